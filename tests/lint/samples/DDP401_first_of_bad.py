"""What an iterator gives next, and where in a list things were put."""

import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    numbers = iter([0, rank])
    next(numbers)
    if next(numbers) == 0:
        dist.barrier()  # <-- DDP401
    numbers = [0, 1]
    numbers.insert(0, rank)
    if numbers[0] == 0:
        dist.barrier()  # <-- DDP401
    if list(reversed([rank, 1]))[1] == 0:
        dist.barrier()  # <-- DDP401
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
