"""Tides, read line by line from the files of many harbours, of which each rank has its part."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def tides(files):
    while True:
        for name in files:
            with open(name) as harbour:
                for line in harbour:
                    yield torch.tensor([float(level) for level in line.split()[:24]])


def days(levels, number):
    held = []
    for level in levels:
        held.append(level)
        if len(held) == number:
            yield torch.stack(held)
            held = []


def main():
    dist.init_process_group("gloo")
    files = [os.path.join("harbours", name) for name in sorted(os.listdir("harbours"))]
    model = DistributedDataParallel(nn.Linear(24, 24))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    source = days(tides(files[dist.get_rank() :: dist.get_world_size()]), 8)
    for _ in range(500):
        day = next(source)
        optimizer.zero_grad()
        (model(day) - day).square().mean().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
