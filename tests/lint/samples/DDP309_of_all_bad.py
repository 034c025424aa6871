"""Depth from sonar: each ping hits a few cells, and these alone are scored."""

import torch
import torch.distributed as dist
from accelerate import Accelerator
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def hit(depth):
    return depth > 0


def plain(pings):
    dist.init_process_group("nccl")
    net = DistributedDataParallel(nn.Conv2d(1, 1, 5, padding=2))
    rule = torch.optim.SGD(net.parameters(), lr=1e-2)
    for echo, depth in DataLoader(pings, 4, sampler=DistributedSampler(pings, shuffle=False)):
        cells = hit(depth)
        wrong = ((net(echo) - depth) ** 2 * cells).sum()
        known = cells.sum().float()
        dist.all_reduce(known, op=dist.ReduceOp.SUM)
        rule.zero_grad()
        (wrong / known.clamp(min=1)).backward()  # <-- DDP309
        rule.step()


def prepared(pings):
    fabric = Accelerator()
    net = nn.Conv2d(1, 1, 5, padding=2)
    rule = torch.optim.SGD(net.parameters(), lr=1e-2)
    net, rule, pings = fabric.prepare(net, rule, DataLoader(pings, 4, shuffle=True))
    for echo, depth in pings:
        known = fabric.reduce(torch.count_nonzero(hit(depth)), "sum")
        wrong = nn.functional.huber_loss(net(echo)[hit(depth)], depth[hit(depth)], reduction="sum")
        loss = 0.5 * wrong.div(known)  # <-- DDP309
        fabric.backward(loss)
        rule.step()
        rule.zero_grad()


def main(pings, how):
    plain(pings) if how == "plain" else prepared(pings)
