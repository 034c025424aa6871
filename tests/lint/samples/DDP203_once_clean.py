"""Samplers that are told the epoch in each, or that are run through once, and told which it is."""

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
    sampler.set_epoch(plan.start)
    return DataLoader(dataset, batch_size=32, sampler=sampler)


def step(model, optimizer, x, y):
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()


def train(model, optimizer, dataset, plan):
    loader = loader_of(dataset, plan)
    for epoch in range(plan.start, plan.epochs):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            step(model, optimizer, x, y)


class Resumed:
    def __init__(self, model, dataset, begun):
        self.model, self.begun = model, begun
        self.sampler = DistributedSampler(dataset)
        self.loader = DataLoader(dataset, batch_size=32, sampler=self.sampler)
        if begun:
            self.sampler.set_epoch(begun)

    def epochs(self, until):
        for epoch in range(self.begun, until):
            self.sampler.set_epoch(epoch)
            yield epoch

    def fit(self, optimizer, epochs):
        for _ in self.epochs(epochs):
            for x, y in self.loader:
                step(self.model, optimizer, x, y)


def once(model, optimizer, dataset, number):
    sampler = DistributedSampler(dataset)
    sampler.set_epoch(number)
    for x, y in DataLoader(dataset, batch_size=32, sampler=sampler):
        step(model, optimizer, x, y)


def main(dataset, begun):
    dist.init_process_group("nccl")
    model = DDP(torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, optimizer, dataset, Plan(start=begun))
    Resumed(model, dataset, begun).fit(optimizer, 20)
    once(model, optimizer, dataset, begun)


main(torch.load("data.pt"), 3)
