"""All number, and write, where the file is not there yet."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def numbered(names, place):
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


def main(names=("ant", "bee", "cow"), place="numbers.txt"):
    dist.init_process_group("gloo")
    number = numbered(names, place)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Embedding(3, 1))
    for name in names:
        model(torch.tensor([int(number[name])])).sum().backward()
    dist.destroy_process_group()


main()
