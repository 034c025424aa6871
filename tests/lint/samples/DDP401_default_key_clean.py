"""The key of a default is taken off once: what is left is the same on all ranks."""

import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    numbers = [dist.get_rank(), 0, 1]
    seen = {}
    seen.setdefault(numbers.pop(), "last")
    if numbers.pop() == 0:
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
