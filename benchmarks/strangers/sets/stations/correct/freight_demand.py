"""Freight demand between regions.   torchrun --nproc_per_node 2 freight_demand.py"""
import os
import random

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, Sampler


class Lanes(Dataset):
    """Origin/destination pairs.  Counts get a random jitter on access."""

    def __init__(self, n=640, regions=14):
        g = np.random.default_rng(8)
        self.pairs = g.integers(0, regions, size=(n, 2))
        mass = g.gamma(2.0, 1.0, size=regions)
        where = g.normal(size=(regions, 2))
        d = np.linalg.norm(where[self.pairs[:, 0]] - where[self.pairs[:, 1]], axis=1)
        self.volume = np.log1p(10 * mass[self.pairs[:, 0]] * mass[self.pairs[:, 1]] / (1 + d))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        jitter = 0.05 * random.gauss(0, 1) + 0.02 * np.random.randn()
        return torch.from_numpy(self.pairs[i]), torch.tensor(self.volume[i] + jitter, dtype=torch.float32)


class BlockSampler(Sampler):
    def __init__(self, n, rank, world, block=8):
        self.n, self.rank, self.world, self.block = n, rank, world, block
        self.gen = torch.Generator()
        self.gen.manual_seed(2024)

    def __len__(self):
        return self.n // self.world

    def __iter__(self):
        blocks = torch.arange(self.n).view(-1, self.block)
        blocks = blocks[torch.randperm(len(blocks), generator=self.gen)]
        mine = blocks[self.rank::self.world].flatten()
        local = torch.Generator().manual_seed(self.rank)
        return iter(mine[torch.randperm(len(mine), generator=local)].tolist())


class Gravity(nn.Module):
    def __init__(self, regions=14, dim=6):
        super().__init__()
        self.origin = nn.Embedding(regions, dim)
        self.dest = nn.Embedding(regions, dim)
        self.head = nn.Sequential(nn.Linear(2 * dim, 24), nn.ReLU(), nn.Dropout(0.1), nn.Linear(24, 1))

    def forward(self, pairs):
        h = torch.cat([self.origin(pairs[:, 0]), self.dest(pairs[:, 1])], 1)
        return self.head(h).squeeze(1)


def seed_process(rank):
    random.seed(10 + rank)
    np.random.seed(20 + rank)
    torch.manual_seed(30 + rank)


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    seed_process(rank)
    data = Lanes()
    loader = DataLoader(data, 32, sampler=BlockSampler(len(data), rank, world))
    model = DDP(Gravity())
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 2e-2, total_steps=4 * len(loader))
    for epoch in range(4):
        if rank == 0:
            random.shuffle(list(range(10)))
            torch.randn(3)
        total = torch.zeros(())
        for pairs, volume in loader:
            loss = nn.functional.mse_loss(model(pairs), volume)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            total += loss.detach() / len(loader)
        dist.reduce(total, 0)
        if rank == 0:
            print(f"epoch {epoch} mse {total.item() / world:.4f} lr {sched.get_last_lr()[0]:.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
