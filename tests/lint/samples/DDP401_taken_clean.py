"""What was taken from a list is in it no more."""

from collections import deque

import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    last = [0, rank]
    last.pop()
    if last.pop() == 0:
        dist.barrier()
    first = deque([rank, 0])
    first.popleft()
    if first.popleft() == 0:
        dist.barrier()
    turned = [0, rank]
    turned.reverse()
    if turned.pop() == 0:
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
