"""All number, and write, where the file is not there yet."""

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
        number[name] = len(number)  # <-- DDP213
    with open(place, "w") as out:  # <-- DDP502
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
        number = numbered(names, given.folder, kind, given.size, given.parts, given.last)
        for name in names:
            model(torch.tensor([int(number[name])])).sum().backward()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
