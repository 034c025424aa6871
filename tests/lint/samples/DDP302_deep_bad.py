import random

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))
        self.is_left_out = None

    def choose(self, is_left_out):
        self.is_left_out = is_left_out

    def forward(self, x):
        return x + self.scale * x.relu()


class Net(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(depth):
            self.layers.append(Layer())

    def choose(self, depth):
        for number, layer in enumerate(self.layers):
            layer.choose(number >= depth)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def main():
    dist.init_process_group("gloo")
    net = DDP(Net(6), find_unused_parameters=True)  # <-- DDP302
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    noise = torch.Generator().manual_seed(dist.get_rank())
    for epoch in range(3):
        random.seed(epoch)
        for _ in range(5):
            net.module.choose(random.choice([2, 4, 6]))
            net(torch.randn(4, 4, generator=noise)).mean().backward()
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    main()
