#!/usr/bin/env python
"""Grading of fundus features (5 levels). Kappa on all validation eyes, computed on the first process."""
import os

import numpy as np
import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

GRADES = 5


def eyes(n, seed):
    g = torch.Generator().manual_seed(seed)
    grade = torch.randint(0, GRADES, (n,), generator=g)
    x = torch.randn(n, 16, generator=g)
    x[:, :4] += grade[:, None].float()
    return TensorDataset(x, grade)


def quadratic_kappa(a, b):
    conf = np.zeros((GRADES, GRADES))
    np.add.at(conf, (a, b), 1)
    w = (np.arange(GRADES)[:, None] - np.arange(GRADES)[None]) ** 2 / (GRADES - 1) ** 2
    expect = np.outer(conf.sum(1), conf.sum(0)) / conf.sum()
    return 1 - (w * conf).sum() / (w * expect).sum()


class Engine:
    def __init__(self, local_rank):
        self.rank = local_rank
        self.world = dist.get_world_size()
        torch.manual_seed(0)
        self.model = DDP(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, GRADES)))
        self.optim = optim.Adam(self.model.parameters(), lr=1e-2)
        self.train_set, self.val_set = eyes(320, 1), eyes(96, 2)

    def loader(self, data, shuffle):
        sampler = DistributedSampler(data, self.world, self.rank, shuffle=shuffle)
        return DataLoader(data, batch_size=16, sampler=sampler)

    def train_epoch(self, epoch):
        loader = self.loader(self.train_set, True)
        loader.sampler.set_epoch(epoch)
        self.model.train()
        for x, y in loader:
            loss = nn.functional.cross_entropy(self.model(x), y)
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()
        return loss.item()

    def collect(self, tensor):
        parts = [torch.zeros_like(tensor) for _ in range(self.world)] if self.rank == 0 else None
        dist.gather(tensor, parts, dst=0)
        return torch.cat(parts) if self.rank == 0 else None

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        pred, true = [], []
        for x, y in self.loader(self.val_set, False):
            pred.append(self.model.module(x).argmax(1))
            true.append(y)
        pred, true = self.collect(torch.cat(pred)), self.collect(torch.cat(true))
        if self.rank != 0:
            return None
        return quadratic_kappa(true.numpy(), pred.numpy())

    def run(self, epochs):
        for epoch in range(epochs):
            loss = self.train_epoch(epoch)
            kappa = self.validate()
            if self.rank == 0:
                print(f"epoch {epoch}: loss {loss:.3f}, kappa {kappa:.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo", init_method="env://")
    Engine(int(os.environ["LOCAL_RANK"])).run(3)
    dist.destroy_process_group()
