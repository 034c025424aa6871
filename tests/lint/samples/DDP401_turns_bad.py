"""Batches that all ranks draw, and of which some ranks never have a turn."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main(rounds=60):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    everyones = torch.Generator().manual_seed(7)
    net = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for turn in range(rounds * world):
        rows = torch.randn(8, 4, generator=everyones)
        if turn % 2 != rank:
            continue  # <-- DDP307
        optimizer.zero_grad()
        net(rows).mean().backward()  # <-- DDP401
        optimizer.step()
    for turn in range(rounds * world):
        rows = torch.randn(8, 4, generator=everyones)
        if turn % (world - 1) == rank:  # <-- DDP307
            optimizer.zero_grad()
            net(rows).mean().backward()  # <-- DDP401
            optimizer.step()
    dist.destroy_process_group()


main()
