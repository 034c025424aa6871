import sys

import torch
import torch.distributed as dist
from data import loader
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    batches, sampler = loader(sys.argv[1], world, rank, pattern="images/*.png")
    model = DistributedDataParallel(nn.Linear(2, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for images in batches:
            optimizer.zero_grad()
            model(images).mean().backward()
            optimizer.step()


if __name__ == "__main__":
    train()
