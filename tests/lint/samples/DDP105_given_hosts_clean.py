"""Processes of this host, and how many hosts there are: both are options, for a cluster."""

import argparse

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def work(place, options):
    first = options.host * options.per_host
    dist.init_process_group(
        "gloo",
        init_method=options.meeting,
        world_size=options.ranks,
        rank=first + place,
    )
    net = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(8):
        optimizer.zero_grad()
        net(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--host", type=int, default=0)
    parser.add_argument("--per-host", type=int, default=4)
    parser.add_argument("--meeting", default="tcp://10.3.0.7:29461")
    options = parser.parse_args()
    options.ranks = options.hosts * options.per_host
    mp.spawn(work, args=(options,), nprocs=options.per_host)


if __name__ == "__main__":
    main()
