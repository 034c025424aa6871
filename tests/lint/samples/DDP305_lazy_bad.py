"""A head that learns its width from the first batch, and is wrapped before there was one."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten())
        self.head = nn.LazyLinear(classes)

    def forward(self, x):
        return self.head(self.body(x))


def main():
    dist.init_process_group("gloo")
    model = DDP(Net())  # <-- DDP305
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in torch.load("batches.pt"):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
