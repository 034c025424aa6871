"""A counter lets the optimizer step when enough micro-batches have been added up."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(model, optimizer, needed):
    waiting = 0
    for _ in range(100):
        loss = model(torch.randn(4, 8)).mean() / needed
        loss.backward()  # <-- DDP304
        waiting += 1
        if waiting < needed:
            continue
        optimizer.step()
        optimizer.zero_grad()
        waiting = 0


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(int(os.environ["RANK"]))
    model = DistributedDataParallel(nn.Linear(8, 2))
    train(model, torch.optim.Adam(model.parameters()), 4)


if __name__ == "__main__":
    main()
