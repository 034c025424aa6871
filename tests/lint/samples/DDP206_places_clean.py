"""Each rank has numbers of its own to try this with, of which it takes a part."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    data = torch.randn(60, 3)
    wanted = data.sum(1)
    model = DistributedDataParallel(nn.Linear(3, 1))
    for x, y in zip(data[rank::world].split(5), wanted[rank::world].split(5), strict=True):
        (model(x).view(-1) - y).square().mean().backward()


main()
