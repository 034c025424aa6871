"""One trunk for two views, checkpointed with reentry: each block is marked ready twice."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint


class Siamese(nn.Module):
    def __init__(self, width=8, depth=3):
        super().__init__()
        self.first = nn.Linear(4, width)
        self.trunk = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.saves = True

    def encode(self, x):
        x = self.first(x)
        for layer in self.trunk:
            if self.saves and self.training:
                x = checkpoint(layer, x, use_reentrant=True)  # <-- DDP311
            else:
                x = layer(x)
        return x

    def forward(self, one, other):
        return self.encode(one), self.encode(other)


class Recurrent(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.cell = nn.Linear(width, width)

    def forward(self, x):
        x = checkpoint(self.cell, x, use_reentrant=True)  # <-- DDP311
        return checkpoint(self.cell, x, use_reentrant=True)  # <-- DDP311


def main(batches):
    dist.init_process_group("nccl")
    model, other = DDP(Siamese()), DDP(Recurrent())
    optimizer = torch.optim.SGD([*model.parameters(), *other.parameters()], lr=0.1)
    for one, two in batches:
        a, b = model(one, two)
        loss = F.mse_loss(a, b) + other(one).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main(torch.load("batches.pt"))
