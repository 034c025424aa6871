"""Whoever is not the first leaves before, where a setting says that there are others."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Writer:
    def __init__(self, settings):
        self.among_others = settings.get("among_others", False)
        self.rank = dist.get_rank() if self.among_others else 0

    def write(self, model, file):
        if self.among_others and self.rank != 0:
            return
        torch.save(model.module.state_dict(), file)


def train(settings):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(2, 2))
    model(torch.ones(1, 2)).sum().backward()
    Writer(settings).write(model, "model.pt")


if __name__ == "__main__":
    train(torch.load("settings.pt", map_location="cpu"))
