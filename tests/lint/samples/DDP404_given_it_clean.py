"""Rank 0 evaluates what it is given: whether it ever looks for a file nobody knows here."""

import pathlib

import torch
import torch.distributed as dist
from averages import average_of  # not to be seen
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def evaluate(given, weights):
    if given is None:
        path = pathlib.Path(weights)
        if not path.exists():
            raise FileNotFoundError(path)
        given = torch.load(path)
    return given(torch.ones(1, 8)).item()


def main():
    dist.init_process_group("gloo")
    model = DDP(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).mean().backward()
        optimizer.step()
        if dist.get_rank() == 0:
            print(epoch, evaluate(average_of(model), "teacher.pt"))
        dist.barrier()
    dist.destroy_process_group()


main()
