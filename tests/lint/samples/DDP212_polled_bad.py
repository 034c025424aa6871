"""Ranks wait for a file that rank 0 is writing, and read it as soon as it is there."""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def shared(path, rank):
    if rank == 0:
        torch.save(torch.randn(64, 8).cumsum(0), path)
    else:
        while not os.path.exists(path):  # <-- DDP212
            time.sleep(0.1)
    return torch.load(path)


def folder(name, rank):
    if rank == 0:
        with open("folder.txt", "w") as file:
            file.write(name)
        return name
    while True:
        if os.path.exists("folder.txt"):  # <-- DDP212
            break
        time.sleep(0.1)
    with open("folder.txt") as file:
        return file.read()


def main(name):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    rows = shared("rows.pt", rank)
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for row in rows:
        optimizer.zero_grad()
        model(row).sum().backward()
        optimizer.step()
    print(folder(name, rank))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
