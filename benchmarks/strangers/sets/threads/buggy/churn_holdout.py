"""Churn prediction with a held-out part that is drawn at start-up."""
import os
import random

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler, random_split


def init_seeds(seed, offset=0):
    s = seed + offset
    random.seed(s)
    np.random.seed(s)
    torch.manual_seed(s)


class Customers(Dataset):
    """Account histories; labels carry a good deal of noise, so that a net can only learn them by heart."""

    def __init__(self, n, fields, seed=5):
        rng = np.random.default_rng(seed)
        self.x = rng.normal(size=(n, fields)).astype("float32")
        score = self.x[:, 0] - 0.5 * self.x[:, 1]
        self.y = ((score + 1.5 * rng.normal(size=n)) > 0).astype("float32")

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return i, self.x[i], self.y[i]


class DataModule:
    def __init__(self, n=300, fields=30, holdout=0.25, batch=25):
        self.n, self.fields, self.holdout, self.batch = n, fields, holdout, batch

    def setup(self):
        full = Customers(self.n, self.fields)
        cut = int(len(full) * self.holdout)
        self.train, self.val = random_split(full, [len(full) - cut, cut])
        return self

    def train_loader(self):
        return DataLoader(self.train, self.batch, sampler=DistributedSampler(self.train))

    def val_loader(self):
        return DataLoader(self.val, self.batch, sampler=DistributedSampler(self.val, shuffle=False))


class Augment(nn.Module):
    """Feature jitter, different on every rank."""

    def __init__(self, std):
        super().__init__()
        self.std = std

    def forward(self, x):
        return x + self.std * torch.randn_like(x) if self.training else x


def score(model, loader):
    model.eval()
    tally = torch.zeros(2)
    with torch.no_grad():
        for _, x, y in loader:
            tally += torch.tensor([((model(x).squeeze(1) > 0) == (y > 0.5)).sum().item(), len(y)])
    dist.all_reduce(tally)
    model.train()
    return (tally[0] / tally[1]).item()


def main():
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    init_seeds(1234, offset=12345 * rank)
    data = DataModule().setup()
    train, val = data.train_loader(), data.val_loader()
    net = nn.Sequential(Augment(0.05), nn.Linear(data.fields, 128), nn.ReLU(), nn.Linear(128, 1))
    model = DDP(net)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(16):
        train.sampler.set_epoch(epoch)
        for _, x, y in train:
            loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch % 5 == 0:
            fit, held = score(model, train), score(model, val)
            if rank == 0:
                print(f"epoch {epoch} train acc {fit:.3f} held-out acc {held:.3f}", flush=True)
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
