from enum import Enum, auto

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Phase(Enum):
    FIT = auto()
    CHECK = auto()


def run_batch(model, batch, phase):
    net = model if phase == Phase.CHECK else model.module
    return net(batch).square().mean()  # <-- DDP303


def train(batches):
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches:
        optimizer.zero_grad()
        run_batch(model, batch, Phase.FIT).backward()
        optimizer.step()
    with torch.no_grad():
        return [run_batch(model, batch, Phase.CHECK) for batch in batches]
