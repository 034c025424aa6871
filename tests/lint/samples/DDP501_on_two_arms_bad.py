"""Rank 0 makes what all begin with, while the others read it."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(net):
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(9):
        optimizer.zero_grad()
        model(torch.randn(4, 4)).square().mean().backward()
        optimizer.step()


def main(path):
    dist.init_process_group("gloo")
    net = nn.Linear(4, 1)
    rank = dist.get_rank()
    if rank == 0:
        torch.save(net.state_dict(), path + ".part")
        os.replace(path + ".part", path)
    if rank > 0:
        net.load_state_dict(torch.load(path, map_location="cpu"))  # <-- DDP501
    train(net)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
