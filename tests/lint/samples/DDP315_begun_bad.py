"""Windows of four that are counted twice, from numbers that do not fit, and a loop cut short."""

from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Learner:
    def __init__(self, net):
        self.net = DDP(net)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.turn = 1

    def learn(self, parts):
        for place, part in enumerate(parts):
            with self.net.no_sync() if self.turn % 4 else nullcontext():  # <-- DDP315
                self.net(part).mean().backward()
            self.turn += 1
            if place % 4 == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()


def by_flag(net, optimizer, parts):
    turn = 1
    for place, part in enumerate(parts, 1):
        net.require_backward_grad_sync = (place + 1) % 4 == 0  # <-- DDP315
        net(part).mean().backward()
        if turn % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
        turn += 1
    net.require_backward_grad_sync = True


def plainly_afterwards(net, optimizer):
    parts = [torch.randn(4, 8) for _ in range(10)]
    turn = 0
    for part in parts:
        turn += 1
        net.require_backward_grad_sync = turn % 4 == 0  # <-- DDP315
        net(part).mean().backward()
        if turn % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
    for part in parts:
        net(part).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def main():
    dist.init_process_group("gloo")
    parts = torch.randn(40, 4, 8).unbind()
    Learner(torch.nn.Linear(8, 2)).learn(parts)
    net = DDP(torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    by_flag(net, optimizer, parts)
    plainly_afterwards(net, optimizer)
    dist.destroy_process_group()


main()
