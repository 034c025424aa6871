"""Settings whose entries are attributes as well, as many of them as a file has."""

import json
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Settings(dict):
    def __init__(self, entries):
        super().__init__()
        for name, value in entries.items():
            setattr(self, name, value)

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        super().__setitem__(name, value)


def checked(settings):
    assert "rate" in settings and settings.rate > 0, settings
    return settings


def main():
    with open(sys.argv[1]) as file:
        settings = Settings(json.load(file))
    settings.rank = int(os.environ["RANK"])
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=checked(settings).rate)
    noise = torch.Generator().manual_seed(settings.rank)
    for _ in range(10):
        optimizer.zero_grad()
        model(torch.randn(8, 4, generator=noise)).square().mean().backward()
        optimizer.step()
    if settings.rank == 0:
        dist.barrier()  # <-- DDP401
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
