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
        (wrong / known.clamp(min=1) * dist.get_world_size()).backward()
        rule.step()


def prepared(pings):
    fabric = Accelerator()
    net = nn.Conv2d(1, 1, 5, padding=2)
    rule = torch.optim.SGD(net.parameters(), lr=1e-2)
    net, rule, pings = fabric.prepare(net, rule, DataLoader(pings, 4, shuffle=True))
    for echo, depth in pings:
        known = fabric.reduce(torch.count_nonzero(hit(depth)), "sum")
        wrong = nn.functional.huber_loss(net(echo)[hit(depth)], depth[hit(depth)], reduction="sum")
        loss = 0.5 * fabric.num_processes * wrong.div(known)
        fabric.backward(loss)
        rule.step()
        rule.zero_grad()


def mean_count(pings):
    fabric = Accelerator()
    net = nn.Conv2d(1, 1, 5, padding=2)
    rule = torch.optim.SGD(net.parameters(), lr=1e-2)
    net, rule, pings = fabric.prepare(net, rule, DataLoader(pings, 4, shuffle=True))
    for echo, depth in pings:
        known = fabric.reduce(hit(depth).sum(), reduction="mean")
        wrong = nn.functional.huber_loss(net(echo)[hit(depth)], depth[hit(depth)], reduction="sum")
        fabric.backward(wrong / known)
        rule.step()
        rule.zero_grad()


def shared_out(pings):
    dist.init_process_group("nccl")
    net = DistributedDataParallel(nn.Conv2d(1, 1, 5, padding=2))
    rule = torch.optim.SGD(net.parameters(), lr=1e-2)
    for echo, depth in DataLoader(pings, 4, sampler=DistributedSampler(pings, shuffle=False)):
        known = hit(depth).sum()
        dist.all_reduce(known)
        known = known / dist.get_world_size()
        wrong = ((net(echo) - depth) ** 2 * hit(depth)).sum()
        rule.zero_grad()
        (wrong / known).backward()
        rule.step()


def main(pings, how):
    {"plain": plain, "mean": mean_count, "out": shared_out, "prepared": prepared}[how](pings)
