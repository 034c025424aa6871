"""Layers that a loop has put into a list, of which some are left out now and then."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class TwoHeads(nn.Module):
    def __init__(self, depth):
        super().__init__()
        layers = [nn.Linear(16, 16)]
        for _ in range(depth):
            layers += [nn.ReLU(), nn.Linear(16, 16)]
        self.trunk = nn.Sequential(*layers)
        self.kind, self.value = nn.Linear(16, 3), nn.Linear(16, 1)

    def forward(self, x):
        for layer in self.trunk:
            if torch.rand(()) < 0.9:
                x = layer(x)
        return self.kind(x), self.value(x)


def main(batches, depth):
    dist.init_process_group("gloo")
    model = DDP(TwoHeads(depth), find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in batches:
        kind, value = model(x)
        optimizer.zero_grad()
        (kind.pow(2).mean() + value.pow(2).mean()).backward()
        optimizer.step()


main(torch.load("batches.pt"), 4)
