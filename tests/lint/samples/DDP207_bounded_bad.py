"""Each rank has other songs, and what would stop them at the same one is switched off."""

import argparse
import glob
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

TRIAL = "--trial" in sys.argv


def load(names):
    return [torch.load(name) for name in names if "b" in name]


def by_flag(net, names, rank, world):
    for song in load(names[rank::world]):  # <-- DDP207
        net(song).sum().backward()
        if TRIAL:
            break


def by_option(net, names, rank, world, most):
    for place, song in enumerate(load(names[rank::world]), 1):  # <-- DDP207
        net(song).sum().backward()
        if place == most:
            break


def by_both(net, names, rank, world, some):
    for place, song in enumerate(load(names[rank::world]), 1):  # <-- DDP207
        net(song).sum().backward()
        if some and place >= some:
            break


def by_number(net, names, rank, world):
    for place, song in enumerate(load(names[rank::world])):  # <-- DDP207
        if place > 10**9:
            break
        net(song).sum().backward()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--most", type=int, default=-1)
    parser.add_argument("--some", type=int)
    given = parser.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    names = sorted(glob.glob("songs/*.pt"))
    net = DistributedDataParallel(nn.Linear(4, 1))
    by_flag(net, names, rank, world)
    by_option(net, names, rank, world, given.most)
    by_both(net, names, rank, world, given.some)
    by_number(net, names, rank, world)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
