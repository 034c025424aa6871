"""Samplers that are told one epoch, before the loop over them: each has the order of the first."""

import dataclasses

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


@dataclasses.dataclass
class Plan:
    epochs: int = 10
    start: int = 0


def loader_of(dataset, plan):
    sampler = DistributedSampler(dataset, shuffle=True)
    sampler.set_epoch(plan.start)  # <-- DDP203
    return DataLoader(dataset, batch_size=32, sampler=sampler)


def step(model, optimizer, x, y):
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()


def train(model, optimizer, dataset, plan):
    loader = loader_of(dataset, plan)
    for _ in range(plan.start, plan.epochs):
        for x, y in loader:
            step(model, optimizer, x, y)


class Resumed:
    def __init__(self, model, dataset, begun):
        self.model, self.begun = model, begun
        self.sampler = DistributedSampler(dataset)
        self.loader = DataLoader(dataset, batch_size=32, sampler=self.sampler)
        if begun:
            self.sampler.set_epoch(begun)  # <-- DDP203

    def fit(self, optimizer, epochs):
        for _ in range(self.begun, epochs):
            for x, y in self.loader:
                step(self.model, optimizer, x, y)


def main(dataset, begun):
    dist.init_process_group("nccl")
    model = DDP(torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, optimizer, dataset, Plan(start=begun))
    Resumed(model, dataset, begun).fit(optimizer, 20)


main(torch.load("data.pt"), 3)
