"""Sums over what all have, terms that are gathered, and averages that are made by hand."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.nn.functional import all_gather
from torch.nn.parallel import DistributedDataParallel


def summed(net, batches, optimizer, world, everything):
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y, reduction="sum") * world / everything
        loss.backward()
        optimizer.step()


def counted(net, batches, optimizer):
    for x, y in batches:
        number = torch.tensor(float(len(x)))
        dist.all_reduce(number)
        off = (net(x) - y).square().sum() * dist.get_world_size() / number
        optimizer.zero_grad()
        off.backward()
        optimizer.step()


def spread(net, batches, optimizer, world):
    for x, _ in batches:
        rows = torch.cat(all_gather(net(x)))
        loss = (rows - rows.mean(0)).square().mean() * world
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def by_hand(batches, world):
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in batches:
        optimizer.zero_grad()
        (F.mse_loss(net(x), y) / world).backward()
        for weight in net.parameters():
            dist.all_reduce(weight.grad)
        optimizer.step()


def main(batches):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    net = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    mine = batches[rank::world]
    summed(net, mine, optimizer, world, 16 * world)
    counted(net, mine, optimizer)
    spread(net, mine, optimizer, world)
    by_hand(mine, world)


if __name__ == "__main__":
    main([(torch.randn(4, 4), torch.randn(4, 1)) for _ in range(96)])
