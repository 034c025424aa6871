"""Tagging of river gauges: a step is taken once enough days have been seen,
from the last of them alone."""

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
        learner.zero_grad()
        nn.functional.cross_entropy(network(levels), tags).backward()
        if days.are_enough():
            learner.step()
            days.seen = 0
    dist.destroy_process_group()


fit(torch.load("gauges.pt"))
