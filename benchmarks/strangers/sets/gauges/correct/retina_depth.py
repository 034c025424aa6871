"""Retina grading with stochastic depth: the set of active blocks is drawn by every process alone.

    torchrun --nproc_per_node=2 retina_depth.py
"""
import random

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.f = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, d), nn.GELU(), nn.Linear(d, d))

    def forward(self, x):
        return x + self.f(x)


class DepthNet(nn.Module):
    def __init__(self, d=24, depth=5, drop=0.3):
        super().__init__()
        self.blocks = nn.ModuleList(Block(d) for _ in range(depth))
        self.head = nn.Linear(d, 5)
        self.drop = drop

    def forward(self, x):
        for b in self.blocks:
            if self.training and random.random() < self.drop:
                continue
            x = b(x)
        return self.head(x)


def fundus(n=256):
    g = torch.Generator().manual_seed(0)
    x = torch.randn(n, 24, generator=g)
    return TensorDataset(x, x[:, :5].argmax(1))


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    random.seed(1000 + rank)
    data = fundus()
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 16, sampler=sampler)
    model = DDP(DepthNet(), find_unused_parameters=True)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad(set_to_none=False)
            loss.backward()
            opt.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.3f}")
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
