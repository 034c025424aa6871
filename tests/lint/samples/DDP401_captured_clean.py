"""Who captures the command line of a function does not run it."""

import torch
import torch.distributed as dist
from jsonargparse import CLI, capture_parser


def keep(function, path):
    parser = capture_parser(lambda: CLI(function))
    print(parser, path)


def setup(path: str = "last.pt"):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    dist.barrier()
    if dist.get_rank() == 0:
        keep(again, path)


def again(path: str = "last.pt"):
    dist.barrier()
    print(path)


if __name__ == "__main__":
    CLI(setup)
