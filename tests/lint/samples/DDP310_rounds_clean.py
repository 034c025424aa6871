"""Foretells a number, block after block, and looks at a layer that is as wide; no part of DDP."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(1, 1)

    def forward(self, number):
        return number + self.body(number)


class Foretells(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(depth)])

    def forward(self, number):
        for block in self.blocks:
            number = block(number)
        return number


def main(data, depth):
    dist.init_process_group("gloo")
    sampler = DistributedSampler(data)
    model = DistributedDataParallel(Foretells(depth))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for batch in DataLoader(data, batch_size=1, sampler=sampler):
            optimizer.zero_grad()
            number = model(batch)
            number.sum().backward()
            optimizer.step()
            print(nn.Linear(1, number.long()).weight.norm())
    dist.destroy_process_group()


if __name__ == "__main__":
    main(torch.load("data.pt"), int(input()))
