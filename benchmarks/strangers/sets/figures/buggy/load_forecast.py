"""Hourly load forecasting, one MLP for all meters."""
import os

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, Subset, TensorDataset
from torch.utils.data.distributed import DistributedSampler

HIST, EPOCHS, BATCH_SIZE, LR = 24, 10, 32, 0.02


def windows(n_meters=24, hours=60):
    rng = np.random.default_rng(0)
    xs, ys = [], []
    for m in range(n_meters):
        t = np.arange(hours + HIST)
        s = np.sin(2 * np.pi * t / 24 + rng.uniform(0, 6)) * (1 + m / 8) + rng.normal(0, 0.1 + 0.05 * m, len(t))
        for i in range(0, hours, 2):
            xs.append(s[i:i + HIST])
            ys.append(s[i + HIST])
    return TensorDataset(torch.tensor(np.array(xs), dtype=torch.float32), torch.tensor(ys, dtype=torch.float32))


class Forecaster:
    def __init__(self):
        self.rank = int(os.environ["RANK"])
        torch.manual_seed(0)
        data = windows()
        perm = np.random.default_rng(1).permutation(len(data))
        self.train_set, self.val_set = Subset(data, perm[:-120]), Subset(data, perm[-120:])
        self.train_sampler = DistributedSampler(self.train_set, shuffle=True)
        self.train_loader = DataLoader(self.train_set, BATCH_SIZE, sampler=self.train_sampler)
        self.val_loader = DataLoader(
            self.val_set, BATCH_SIZE, sampler=DistributedSampler(self.val_set, shuffle=False))
        self.model = DDP(nn.Sequential(nn.Linear(HIST, 64), nn.ReLU(), nn.Linear(64, 1)))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=LR)
        self.scheduler = ReduceLROnPlateau(self.optimizer, mode="min", factor=0.5, patience=0)

    def train_epoch(self, epoch):
        self.model.train()
        self.train_sampler.set_epoch(epoch)
        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.model(x).squeeze(1), y).backward()
            self.optimizer.step()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        sse = torch.zeros(2)
        for x, y in self.val_loader:
            sse += torch.tensor([((self.model(x).squeeze(1) - y) ** 2).sum().item(), len(y)])
        return (sse[0] / sse[1]).item()

    def fit(self):
        for epoch in range(EPOCHS):
            self.train_epoch(epoch)
            val_loss = self.validate()
            self.scheduler.step(val_loss)
            if self.rank == 0:
                lr = self.optimizer.param_groups[0]["lr"]
                print(f"epoch {epoch} val_mse {val_loss:.4f} lr {lr:.5f}")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    f = Forecaster()
    f.fit()
    if f.rank == 0:
        torch.save(f.model.module.state_dict(), "forecast.pt")
    dist.barrier()
    dist.destroy_process_group()
