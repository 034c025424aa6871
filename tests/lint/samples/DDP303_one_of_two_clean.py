"""Trains on the loss of one of two bare models, and averages its gradients itself."""

import os

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


class Deep(Net):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(2, 2)

    def compute_loss(self, batch):
        return self.head(self.inner(batch)).sum()


class Trainer:
    def __init__(self, deep):
        self.model = DistributedDataParallel(Deep() if deep else Net())

    def bare(self):
        wrapped = isinstance(self.model, DistributedDataParallel)
        return self.model.module if wrapped else self.model

    def train(self):
        optimizer = torch.optim.Adam(self.model.parameters())
        for batch in batches():
            optimizer.zero_grad()
            loss = self.bare().compute_loss(batch)
            loss.backward()
            for parameter in self.bare().parameters():
                if not parameter.requires_grad:
                    continue
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                dist.all_reduce(parameter.grad, op=dist.ReduceOp.AVG)
            optimizer.step()


dist.init_process_group("nccl")
Trainer(os.environ.get("DEEP") == "1").train()
