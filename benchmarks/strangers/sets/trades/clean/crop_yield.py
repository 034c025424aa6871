"""Crop yield from weather series: a data module, a model, a loop."""
import argparse
import random

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, random_split


def seed_everything(seed):
    # every worker gets its own stream, otherwise all of them add the same noise
    seed = seed + dist.get_rank()
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Fields(Dataset):
    """Weekly rain and temperature of a season -> tonnes per hectare."""

    def __init__(self, n=400, weeks=16, noise=0.05):
        rng = np.random.RandomState(2024)
        self.rain = rng.gamma(2.0, 1.0, (n, weeks)).astype(np.float32)
        self.temp = (15 + 6 * rng.randn(n, weeks)).astype(np.float32)
        season = np.sin(np.linspace(0, np.pi, weeks))
        stress = np.maximum(self.temp - 25, 0).sum(1)
        self.y = ((self.rain * season).sum(1) / 8 - 0.02 * stress).astype(np.float32)
        self.noise = noise

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        x = np.stack([self.rain[i], (self.temp[i] - 15) / 6])
        x = x + self.noise * np.random.randn(*x.shape)
        return torch.from_numpy(x).float(), torch.tensor(self.y[i]), i


class YieldData:
    def __init__(self, batch_size, val_fraction):
        self.batch_size = batch_size
        self.val_fraction = val_fraction

    def setup(self):
        full = Fields()
        n_val = int(len(full) * self.val_fraction)
        self.train_set, self.val_set = random_split(
            full, [len(full) - n_val, n_val], generator=torch.Generator().manual_seed(2024)
        )

    def train_loader(self):
        sampler = DistributedSampler(self.train_set, shuffle=True, drop_last=True)
        return DataLoader(self.train_set, self.batch_size, sampler=sampler, drop_last=True)

    def val_loader(self):
        sampler = DistributedSampler(self.val_set, shuffle=False)
        return DataLoader(self.val_set, self.batch_size, sampler=sampler)


class SeasonNet(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.conv = nn.Conv1d(2, hidden, 3, padding=1)
        self.fc = nn.Sequential(nn.Linear(hidden * 16, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.fc(torch.relu(self.conv(x)).flatten(1)).squeeze(-1)


def fit(model, data, args):
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-3)
    train_loader, val_loader = data.train_loader(), data.val_loader()
    best = float("inf")
    for epoch in range(args.epochs):
        train_loader.sampler.set_epoch(epoch)
        model.train()
        for x, y, _ in train_loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        val = validate(model, val_loader)
        best = min(best, val)
        if dist.get_rank() == 0 and epoch % 2 == 0:
            print(f"epoch {epoch} val mse {val:.4f}", flush=True)
    return best


@torch.no_grad()
def validate(model, loader):
    model.eval()
    acc = torch.zeros(2)
    for x, y, _ in loader:
        acc += torch.tensor([(model.module(x) - y).pow(2).sum().item(), len(y)])
    dist.all_reduce(acc)
    return (acc[0] / acc[1]).item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=8)
    p.add_argument("--batch_size", type=int, default=16)
    p.add_argument("--val_fraction", type=float, default=0.25)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--seed", type=int, default=31)
    args = p.parse_args()

    dist.init_process_group("gloo")
    seed_everything(args.seed)
    data = YieldData(args.batch_size, args.val_fraction)
    data.setup()
    model = DistributedDataParallel(SeasonNet())
    best = fit(model, data, args)
    if dist.get_rank() == 0:
        print(f"best val mse {best:.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
