"""A trunk for each view, or one that one view alone goes through; and a way for each mode."""

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
        self.trunk, self.other = self.stack(width, depth), self.stack(width, depth)
        self.saves = True

    def stack(self, width, depth):
        return nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])

    def encode(self, trunk, x):
        for layer in trunk:
            if self.saves and self.training:
                x = checkpoint(layer, x, use_reentrant=True)
            else:
                x = layer(x)
        return x

    def forward(self, one, other):
        return self.encode(self.trunk, self.first(one)), self.encode(self.other, self.first(other))


class Recurrent(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.cell = nn.Linear(width, width)

    def forward(self, x):
        if x.shape[1] == 4:
            return checkpoint(self.cell, x, use_reentrant=True)
        x = F.pad(x, (0, 1))
        return checkpoint(self.cell, x, use_reentrant=True)


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
