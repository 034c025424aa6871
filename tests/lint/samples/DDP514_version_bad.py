"""What every Python does that torch runs on is done."""

import os
import sys

import six
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def make(path):
    if six.PY2:
        os.makedirs(path, exist_ok=True)
    elif not os.path.isdir(path):
        os.makedirs(path)  # <-- DDP514
    if sys.version_info < (3, 2):
        os.makedirs(f"{path}/logs", exist_ok=True)
    elif not os.path.isdir(f"{path}/logs"):
        os.makedirs(f"{path}/logs")  # <-- DDP514


def main():
    dist.init_process_group("nccl")
    net = DDP(torch.nn.Linear(4, 4))
    make("out")
    print(net)


if __name__ == "__main__":
    main()
