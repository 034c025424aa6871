"""Leaves of vines: each rank has the pictures of one grower."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


class Leaf(nn.Module):
    def __init__(self, kinds):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, stride=2)
        self.norm = nn.BatchNorm2d(16)
        self.top = nn.Linear(16, kinds)

    def forward(self, leaf):
        return self.top(torch.relu(self.norm(self.stem(leaf))).mean((2, 3)))


def learn(net, rule, pictures):
    net.train()
    for leaf, kind in pictures:
        rule.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(net(leaf), kind).backward()
        rule.step()


def right(net, pictures):
    net.eval()
    found = torch.zeros(2)
    with torch.no_grad():
        for leaf, kind in pictures:
            found[0] += (net(leaf).argmax(1) == kind).sum()
            found[1] += len(kind)
    dist.all_reduce(found)
    return (found[0] / found[1]).item()


def main(grown, held_out, kinds=9):
    dist.init_process_group("gloo")
    torch.manual_seed(6)
    net = DDP(Leaf(kinds), broadcast_buffers=False)  # <-- DDP312
    rule = torch.optim.SGD(net.parameters(), lr=0.1)
    order = DistributedSampler(grown)
    pictures = DataLoader(grown, 32, sampler=order, drop_last=True)
    others = DataLoader(held_out[dist.get_rank() :: dist.get_world_size()], 64)
    for number in range(30):
        order.set_epoch(number)
        learn(net, rule, pictures)
        share = right(net, others)
        if dist.get_rank() == 0:
            print(number, share)
    dist.destroy_process_group()


main(*torch.load("leaves.pt"))
