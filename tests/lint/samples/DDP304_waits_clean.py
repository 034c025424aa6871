"""The first rounds only warm up: nothing is added up."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(model, optimizer, needed):
    warmed = 0
    for _ in range(100):
        optimizer.zero_grad()
        loss = model(torch.randn(4, 8)).mean()
        loss.backward()
        warmed += 1
        if warmed < needed:
            continue
        optimizer.step()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(int(os.environ["RANK"]))
    model = DistributedDataParallel(nn.Linear(8, 2))
    train(model, torch.optim.Adam(model.parameters()), 4)


if __name__ == "__main__":
    main()
