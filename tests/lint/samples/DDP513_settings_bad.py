"""Goes on where the last job has stopped, in the folder that its settings name."""

import os
import sys

import torch
import torch.distributed as dist
import yaml
from torch.nn.parallel import DistributedDataParallel


class Settings(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__

    def read(self, *paths):
        for path in paths:
            if os.path.exists(path):
                with open(path) as file:
                    self.update(yaml.safe_load(file))


def last_state(settings):
    path = os.path.join(settings.folder, settings.name, "last.pt")
    if not os.path.exists(path):  # <-- DDP513
        return None
    return torch.load(path, map_location="cpu")


def main():
    dist.init_process_group("gloo")
    settings = Settings()
    settings.read("settings.yaml", sys.argv[1])
    settings.rank = dist.get_rank()
    settings.name = f"rank{settings.rank}"
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    start = 0
    if (state := last_state(settings)) is not None:
        model.module.load_state_dict(state["model"])
        start = state["epoch"]
    for _ in range(start, 10):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
