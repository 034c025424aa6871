"""What an iterator gives next, and where in a list things were put."""

import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    numbers = iter([rank, 0])
    next(numbers)
    if next(numbers) == 0:
        dist.barrier()
    numbers = [0, 1]
    numbers.insert(1, rank)
    if numbers[0] == 0:
        dist.barrier()
    if list(reversed([rank, 1]))[0] == 1:
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
