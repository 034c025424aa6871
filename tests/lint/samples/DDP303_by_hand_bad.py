"""Trains on the loss of the bare model, and averages what it shows alone."""

import torch
import torch.distributed as dist
from data import batches
from torch.nn.parallel import DistributedDataParallel


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(2, 2)

    def forward(self, batch):
        return self.head(batch)

    def compute_loss(self, batch):
        return self.head(batch).sum()


class Trainer:
    def __init__(self):
        self.model = DistributedDataParallel(Net())

    def bare(self):
        wrapped = isinstance(self.model, DistributedDataParallel)
        return self.model.module if wrapped else self.model

    def train(self):
        optimizer = torch.optim.Adam(self.model.parameters())
        for batch in batches():
            optimizer.zero_grad()
            loss = self.bare().compute_loss(batch)  # <-- DDP303
            loss.backward()
            shown = loss.detach()
            dist.all_reduce(shown, op=dist.ReduceOp.AVG)
            print(shown.item())
            optimizer.step()


dist.init_process_group("nccl")
Trainer().train()
