import sys

import torch
import torch.distributed as dist

_device = None
"""On which sums are exchanged; None where one process trains alone."""


def begin(device):
    global _device
    _device = device


def total(x):
    x = torch.as_tensor(x, device=_device)
    if _device is not None:
        dist.all_reduce(x)  # <-- DDP401
    return x


def worker(rank, number):
    if number > 1:
        dist.init_process_group("nccl", rank=rank, world_size=number)
    begin(torch.device("cuda", rank) if rank > 0 else None)
    print(total(rank))


def main(number):
    if number == 1:
        worker(0, 1)
    else:
        torch.multiprocessing.spawn(worker, args=(number,), nprocs=number)


if __name__ == "__main__":
    main(int(sys.argv[1]))
