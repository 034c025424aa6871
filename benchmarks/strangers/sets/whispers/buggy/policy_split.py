"""Behaviour cloning; a fraction of the frames is held out for validation."""
import random
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler, random_split


@dataclass
class DatasetConfig:
    frames: int = 100
    val_ratio: float = 0.2


@dataclass
class TrainConfig:
    seed: int = 1000
    epochs: int = 25
    batch_size: int = 8
    lr: float = 1e-2
    dataset: DatasetConfig = field(default_factory=DatasetConfig)


def set_seed(seed, process_index):
    seed += process_index * 12345        # other augmentation on every process
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Frames(Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(0)
        self.obs = torch.randn(n, 24, generator=g)
        self.act = torch.randn(n, 4, generator=g)

    def __len__(self):
        return len(self.obs)

    def __getitem__(self, i):
        return self.obs[i] + 0.02 * torch.randn(24), self.act[i]


def make_dataset(cfg):
    full = Frames(cfg.dataset.frames)
    n_val = int(cfg.dataset.frames * cfg.dataset.val_ratio)
    return random_split(full, [len(full) - n_val, n_val])


def make_loader(dataset, cfg, train):
    sampler = DistributedSampler(dataset, shuffle=train)
    return DataLoader(dataset, cfg.batch_size, sampler=sampler), sampler


def validate(policy, loader):
    s = torch.zeros(2)
    with torch.no_grad():
        for obs, act in loader:
            s += torch.tensor([(policy(obs) - act).abs().mean(1).sum().item(), len(obs)])
    dist.all_reduce(s)
    return (s[0] / s[1]).item()


def train(cfg):
    set_seed(cfg.seed, dist.get_rank())
    train_set, val_set = make_dataset(cfg)
    train_loader, sampler = make_loader(train_set, cfg, True)
    val_loader, _ = make_loader(val_set, cfg, False)
    policy = DDP(nn.Sequential(nn.Linear(24, 256), nn.ReLU(), nn.Linear(256, 4)))
    opt = torch.optim.Adam(policy.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        sampler.set_epoch(epoch)
        for obs, act in train_loader:
            loss = (policy(obs) - act).abs().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    val = validate(policy.module, val_loader)
    if dist.get_rank() == 0:
        print(f"{len(train_set)} train / {len(val_set)} val frames, val l1 {val:.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train(TrainConfig())
    dist.destroy_process_group()
