"""A copy of what was wrapped is frozen: its layers, made in a loop, are others than the model's."""

import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        layers = []
        for a, b in zip(sizes, sizes[1:]):
            layers += [nn.Linear(a, b), nn.LayerNorm(b), nn.GELU()]
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(sizes[-1], 10)

    def forward(self, x):
        return self.head(self.body(x))


def main(sizes):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = DDP(Net(sizes))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    averaged = copy.deepcopy(net.module).eval().requires_grad_(False)
    net.module.body.requires_grad_(False)  # <-- DDP301
    noise = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(20):
        x = torch.randn(16, sizes[0], generator=noise)
        loss = cross_entropy(net(x), x.argmax(1) % 10)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for old, new in zip(averaged.parameters(), net.module.parameters()):
                old.lerp_(new, 0.01)
    return averaged


if __name__ == "__main__":
    main([64, 128, 128])
