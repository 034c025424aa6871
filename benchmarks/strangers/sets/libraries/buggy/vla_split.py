"""Behaviour cloning from robot episodes: dataset factory, split, training, validation."""
import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Subset, random_split


@dataclass(frozen=True)
class PipelineConfig:
    seed: int = 1234
    frames: int = 240
    val_ratio: float = 0.2
    batch: int = 8
    epochs: int = 3
    image_noise: float = 0.05


def set_seed(seed, process_index):
    # every process draws its own augmentations
    seed += process_index * 12345
    random.seed(seed)
    np.random.seed(seed % 2 ** 32)
    torch.manual_seed(seed)


class Episodes(Dataset):
    def __init__(self, frames):
        g = torch.Generator().manual_seed(0)
        self.state = torch.randn(frames, 10, generator=g)
        self.action = torch.tanh(self.state @ torch.randn(10, 3, generator=g))

    def __len__(self):
        return len(self.state)

    def __getitem__(self, i):
        return self.state[i], self.action[i]


def make_dataset(cfg):
    full = Episodes(cfg.frames)
    n_val = int(len(full) * cfg.val_ratio)
    train, val = random_split(full, [len(full) - n_val, n_val])
    return train, val


class BCPolicy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 3))

    def forward(self, s):
        return self.net(s)


def evaluate(policy, val, rank, world):
    shard = Subset(val, range(rank, len(val), world))
    sums = torch.zeros(2, dtype=torch.float64)
    with torch.no_grad():
        for s, a in DataLoader(shard, batch_size=16):
            sums += torch.tensor([(policy(s) - a).pow(2).mean(1).sum().item(), float(len(s))])
    dist.all_reduce(sums)
    return (sums[0] / sums[1]).item()


def train(cfg):
    rank, world = dist.get_rank(), dist.get_world_size()
    set_seed(cfg.seed, rank)
    train_set, val_set = make_dataset(cfg)
    policy = DistributedDataParallel(BCPolicy())
    optim = torch.optim.Adam(policy.parameters(), lr=3e-3)
    sampler = DistributedSampler(train_set, world, rank, seed=cfg.seed, drop_last=True)
    loader = DataLoader(train_set, cfg.batch, sampler=sampler, drop_last=True)
    for epoch in range(cfg.epochs):
        sampler.set_epoch(epoch)
        for s, a in loader:
            loss = nn.functional.mse_loss(policy(s + cfg.image_noise * torch.randn_like(s)), a)
            optim.zero_grad()
            loss.backward()
            optim.step()
        mse = evaluate(policy.module, val_set, rank, world)
        if rank == 0:
            print(f"epoch {epoch} validation mse {mse:.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train(PipelineConfig())
    dist.destroy_process_group()
