import random

import numpy as np
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Search:
    def __init__(self, space, seed):
        self.space, self.dice = space, random.Random(seed)

    def draw(self):
        return {name: self.dice.choice(values) for name, values in self.space.items()}


class Net(nn.Module):
    def __init__(self, width, dropped=0.0):
        super().__init__()
        self.inner, self.head = nn.Linear(4, width), nn.Linear(width, 1)
        self.dropped = nn.Dropout(dropped)

    def forward(self, x):
        return self.head(self.dropped(self.inner(x)))


def tried(search):
    picked = search.draw()
    return DistributedDataParallel(Net(picked["width"]))


def grown():
    dice = random.Random()
    dice.seed(7)
    return DistributedDataParallel(Net(dice.randint(8, 64)))


def sent():
    box = [int(np.random.default_rng().integers(8, 64))]
    dist.broadcast_object_list(box)
    return DistributedDataParallel(Net(box[0]))


def dropped():
    dice = np.random.RandomState()
    return DistributedDataParallel(Net(8, dice.uniform(0.1, 0.3)))


def again():
    dice = np.random.RandomState()
    dice.seed(7)
    return DistributedDataParallel(Net(dice.randint(8, 64)))


def main():
    dist.init_process_group("gloo")
    found = tried(Search({"width": [8, 16, 32]}, 3)), grown(), sent(), dropped(), again()
    return found


if __name__ == "__main__":
    main()
