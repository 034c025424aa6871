"""A network of unknown make is frozen, with the head that it was given."""

import sys

import networks
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main(name):
    dist.init_process_group("gloo")
    network = networks.make(name)
    network.head = nn.Sequential(nn.BatchNorm1d(8, affine=False), nn.Linear(8, 2))
    for _, weights in network.named_parameters():
        weights.requires_grad = False
    other = nn.Linear(8, 2)
    for _, weights in other.named_parameters():
        weights.requires_grad = True
    model = DistributedDataParallel(network)  # <-- DDP301
    optimizer = torch.optim.SGD(network.head.parameters(), lr=0.1)
    for _ in range(8):
        optimizer.zero_grad()
        model(torch.randn(8, 8)).square().mean().backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
