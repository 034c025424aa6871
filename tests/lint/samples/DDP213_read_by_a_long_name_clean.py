"""Rank 0 numbers and writes, all meet, and then each finds the file under its long name."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def numbered(names, folder, kind, size, parts, last):
    place = os.path.join(folder, kind, f"numbers_{kind}_{size}_{parts}_{last}.txt")
    if os.path.exists(place):
        with open(place) as lines:
            return dict(line.split() for line in lines)
    number = {}
    for name in set(names):
        number[name] = len(number)
    with open(place, "w") as out:
        for name, each in number.items():
            out.write(f"{name} {each}\n")
    return number


def main(names=("ant", "bee", "cow")):
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", default="data")
    parser.add_argument("--kinds", default="beasts,plants")
    parser.add_argument("--size", type=int, default=500)
    parser.add_argument("--parts", type=int, default=20)
    parser.add_argument("--last", default="sequential")
    given = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Embedding(3, 1))
    for kind in given.kinds.split(","):
        if dist.get_rank() == 0:
            numbered(names, given.folder, kind, given.size, given.parts, given.last)
        dist.barrier()
        number = numbered(names, given.folder, kind, given.size, given.parts, given.last)
        for name in names:
            model(torch.tensor([int(number[name])])).sum().backward()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
