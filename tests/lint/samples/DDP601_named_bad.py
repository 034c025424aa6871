import collections

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Mean:
    def __init__(self):
        self.sum = self.number = 0

    def take(self, value, number=1):
        self.sum = self.sum + value * number  # <-- DDP601
        self.number += number


class Learner:
    def __init__(self):
        self.net = DistributedDataParallel(nn.Linear(4, 1))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.seen = collections.OrderedDict()

    def note(self, values, number):
        for name, value in values.items():
            self.seen.setdefault(name, Mean()).take(value, number)

    def learn(self, rows):
        for row in rows:
            loss = self.net(row).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.note({"loss": loss, "largest": row.max()}, len(row))


dist.init_process_group("gloo")
Learner().learn(torch.randn(20, 8, 4))
