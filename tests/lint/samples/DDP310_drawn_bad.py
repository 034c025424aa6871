import random

import numpy as np
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Search:
    def __init__(self, space):
        self.space, self.dice = space, random.Random()

    def draw(self):
        return {name: self.dice.choice(values) for name, values in self.space.items()}


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner, self.head = nn.Linear(4, width), nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.inner(x))


def tried(search):
    picked = search.draw()
    return DistributedDataParallel(Net(picked["width"]))  # <-- DDP310


def grown():
    dice = np.random.default_rng()
    return DistributedDataParallel(Net(int(dice.integers(8, 64))))  # <-- DDP310


def main():
    dist.init_process_group("gloo")
    return tried(Search({"width": [8, 16, 32]})), grown()


if __name__ == "__main__":
    main()
