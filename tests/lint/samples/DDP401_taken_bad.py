"""What is left when others were taken from a list is the rank."""

from collections import deque

import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    last = [0, rank, 1]
    last.pop()
    if last.pop() == 0:
        dist.barrier()  # <-- DDP401
    first = deque([0, rank])
    first.popleft()
    if first.popleft() == 0:
        dist.barrier()  # <-- DDP401
    turned = [rank, 0]
    turned.reverse()
    if turned.pop() == 0:
        dist.barrier()  # <-- DDP401
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
