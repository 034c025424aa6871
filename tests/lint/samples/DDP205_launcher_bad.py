import os
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def own_seed(seed):
    return 7919 * seed + int(os.environ.get("SLURM_PROCID", "0"))  # <-- DDP205


class Walk:
    def __init__(self, seed):
        self.dice = random.Random(own_seed(seed))

    def walk(self, steps):
        return torch.tensor([[self.dice.uniform(-1, 1)] for _ in range(steps)]).cumsum(0)


def main():
    dist.init_process_group("gloo")
    walk = Walk(5)
    model = DistributedDataParallel(nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(100):
        places = walk.walk(20)
        optimizer.zero_grad()
        (model(places[:-1]) - places[1:]).square().mean().backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
