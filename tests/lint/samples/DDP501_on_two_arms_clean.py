"""Rank 0 notes what it prints, and all train: who goes on from a file has read it long before."""

import contextlib
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(rank, path):
    net, first = nn.Linear(4, 1), 0
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    if "again" in sys.argv:
        state = torch.load(path, map_location="cpu")
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["epoch"] + 1
    dist.init_process_group("gloo")
    model = DistributedDataParallel(net)
    for epoch in range(first, 9):
        optimizer.zero_grad()
        model(torch.randn(4, 4)).square().mean().backward()
        optimizer.step()
        if rank == 0:
            state = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
            torch.save(state, path + ".part")
            os.replace(path + ".part", path)
    dist.destroy_process_group()


def main(path):
    rank = int(os.environ["RANK"])
    if rank == 0:
        with open("log.txt", "w") as log, contextlib.redirect_stdout(log):
            train(rank, path)
    else:
        train(rank, path)


if __name__ == "__main__":
    main(sys.argv[1])
