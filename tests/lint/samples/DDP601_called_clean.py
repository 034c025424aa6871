from collections import defaultdict

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Losses:
    def compute(self, data, rows):
        losses = defaultdict(int)
        for i in range(1, rows):
            for j in range(4):
                loss = (data["out_%d" % i][j] - data["target"][j]).abs().mean()
                losses["loss_%d" % i] += loss / 4
            losses["total"] += losses["loss_%d" % i]
        return losses


class Meter:
    def __init__(self):
        self.sums = {}

    def add(self, name, value):
        if name not in self.sums:
            if type(value) == float or type(value) == int:
                self.sums[name] = value
            else:
                self.sums[name] = value.mean().item()
        else:
            if type(value) == float or type(value) == int:
                self.sums[name] += value
            else:
                self.sums[name] += value.mean().item()


class Work:
    def __init__(self):
        self.net = DistributedDataParallel(torch.nn.Linear(4, 4))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.losses, self.meter = Losses(), Meter()

    def step(self, data, rows):
        out = {}
        for i in range(1, rows):
            out["out_%d" % i] = self.net(data["in"][:, i])
        losses = self.losses.compute({**data, **out}, rows)
        for name, value in losses.items():
            self.meter.add(name, value)
        losses["total"].backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


def main(batches):
    dist.init_process_group("gloo")
    work = Work()
    for data in batches:
        work.step(data, data["in"].shape[1])
