"""Orders of a table from a generator that is seeded by a list of numbers."""

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def rows_of(rank, world, count, epoch):
    rng = np.random.default_rng([17, epoch])
    order = rng.permutation(count)
    return torch.from_numpy(order[rank::world])


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    table = torch.linspace(-1, 1, 400).view(100, 4)
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for rows in rows_of(rank, world, 100, epoch).split(10):
            optimizer.zero_grad()
            model(table[rows]).square().mean().backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
