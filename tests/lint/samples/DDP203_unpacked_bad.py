"""Trains by steps; each batch is a dictionary, and the step is given what is in it by name."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def forever(loader):
    while True:
        yield from loader


class Steps:
    def __init__(self, model, loader):
        self.model = DistributedDataParallel(model)
        self.batches = forever(loader)
        self.optimizer = torch.optim.RMSprop(self.model.parameters())

    def step(self, points, labels):
        loss = nn.functional.cross_entropy(self.model(points), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def fit(self, most):
        return [self.step(**next(self.batches)) for _ in range(most)]


def main(spirals):
    dist.init_process_group("gloo")
    sampler = DistributedSampler(spirals)  # <-- DDP203
    Steps(nn.Linear(2, 2), DataLoader(spirals, 20, sampler=sampler)).fit(600)


if __name__ == "__main__":
    main(torch.load("spirals.pt"))
