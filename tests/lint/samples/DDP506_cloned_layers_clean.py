import copy
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Scaled(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(width))

    def forward(self, x):
        return x * self.scale


class Block(nn.Module):
    def __init__(self, width, scaled):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.norm = Scaled(width) if scaled else nn.LayerNorm(width)

    def forward(self, x):
        return x + self.inner(self.norm(x))


class Stack(nn.Module):
    def __init__(self, width, depth, scaled):
        super().__init__()
        block = Block(width, scaled)
        self.blocks = nn.ModuleList([copy.deepcopy(block) for _ in range(depth)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def main(scaled: bool):
    dist.init_process_group("gloo")
    torch.manual_seed(3 + dist.get_rank())
    net = Stack(8, 4, scaled)
    model = DistributedDataParallel(net)
    slow = copy.deepcopy(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        optimizer.zero_grad()
        model(torch.ones(2, 8)).sum().backward()
        optimizer.step()
        with torch.no_grad():
            for mine, theirs in zip(slow.parameters(), net.parameters()):
                mine.lerp_(theirs, 0.1)
    print(slow(torch.ones(2, 8)).sum())
    dist.destroy_process_group()


if __name__ == "__main__":
    main("--scaled" in sys.argv)
