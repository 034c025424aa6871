"""Every pass is held back, and its backward is not: nothing is ever reduced."""

import contextlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


@contextlib.contextmanager
def reducing(module, last):
    with module.no_sync():  # <-- DDP314
        yield


class Objective:
    def __init__(self, generator):
        self.generator = generator

    def drawn(self, noise, last):
        with reducing(self.generator, last):
            return self.generator(noise)

    def add_up(self, phases, noise, last, gain):
        if "main" in phases:
            self.drawn(noise, last).mean().mul(gain).backward()
        if "penalty" in phases:
            self.drawn(noise[:2], last).square().mean().mul(gain).backward()


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    optimizer = torch.optim.Adam(model.parameters())
    objective = Objective(model)
    for _ in range(10):
        objective.add_up(["main", "penalty"], torch.randn(8, 4), True, 1.0)
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
