"""Tagging of river gauges: a step is taken once enough days have been seen."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

ENOUGH = 8


class Days:
    def __init__(self, enough):
        self.enough, self.seen = enough, 0

    def are_enough(self):
        self.seen += 1
        return self.seen >= self.enough


def fit(gauges):
    dist.init_process_group("gloo")
    network = DistributedDataParallel(nn.Linear(24, 5))
    learner = torch.optim.Adagrad(network.parameters())
    days = Days(ENOUGH)
    for levels, tags in gauges:
        nn.functional.cross_entropy(network(levels), tags).backward()  # <-- DDP304
        if days.are_enough():
            learner.step()
            learner.zero_grad()
            days.seen = 0
    dist.destroy_process_group()


fit(torch.load("gauges.pt"))
