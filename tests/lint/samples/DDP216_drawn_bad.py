"""A search for settings: each rank draws those of a trial for itself."""

import random

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

luck = random.SystemRandom()


def settings():
    return {"rate": 10 ** luck.uniform(-3, -1), "decay": 10 ** luck.uniform(-5, -2)}


def trial(data, drawn):
    model = DistributedDataParallel(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=drawn["rate"])  # <-- DDP216
    sampler = DistributedSampler(data)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for batch in DataLoader(data, 16, sampler=sampler, drop_last=True):
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    for _ in range(4):
        trial(torch.rand(256, 8), settings())
