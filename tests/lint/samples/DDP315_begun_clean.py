"""Windows of four that are counted twice, from numbers that fit, and loops of which one ends."""

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
        for place, part in enumerate(parts, 1):
            with self.net.no_sync() if self.turn % 4 else nullcontext():
                self.net(part).mean().backward()
            self.turn += 1
            if place % 4 == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()


def by_flag(net, optimizer, parts):
    turn = 1
    for place, part in enumerate(parts):
        net.require_backward_grad_sync = (place + 1) % 4 == 0
        net(part).mean().backward()
        if turn % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
        turn += 1
    net.require_backward_grad_sync = True


def by_span(net, optimizer, part):
    turn = 0
    for place in range(1, 9):
        turn += 1
        with nullcontext() if place % 4 == 0 else net.no_sync():
            net(part).mean().backward()
        if turn % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()


def by_what_is_left(net, optimizer, parts):
    left = 4
    for place, part in enumerate(parts):
        left -= 1
        with nullcontext() if left == 0 else net.no_sync():
            net(part).mean().backward()
        if (place + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
            left = 4


def plainly_afterwards(net, optimizer):
    parts = [torch.randn(4, 8) for _ in range(8)]
    turn = 0
    for part in parts:
        turn += 1
        net.require_backward_grad_sync = turn % 4 == 0
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
    by_span(net, optimizer, parts[0])
    by_what_is_left(net, optimizer, parts)
    plainly_afterwards(net, optimizer)
    dist.destroy_process_group()


main()
