"""Who runs the command line of a function runs it."""

import torch
import torch.distributed as dist
from jsonargparse import CLI


def keep(function, path):
    CLI(function)
    print(path)


def setup(path: str = "last.pt"):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    dist.barrier()
    if dist.get_rank() == 0:
        keep(again, path)  # <-- DDP401


def again(path: str = "last.pt"):
    dist.barrier()
    print(path)


if __name__ == "__main__":
    CLI(setup)
