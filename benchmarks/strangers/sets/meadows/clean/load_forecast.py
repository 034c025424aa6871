"""Day-ahead electricity load forecasting with a small GRU.

Launch with torchrun; every process owns a group of substations.
"""
import math
import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Settings:
    history: int = 48
    horizon: int = 12
    hidden: int = 24
    batch: int = 32
    max_epochs: int = 40
    patience: int = 2
    min_delta: float = 1e-3
    lr: float = 4e-3
    windows: int = 192
    out: str = "forecast.pt"


def substation_series(station, length):
    g = torch.Generator().manual_seed(900 + station)
    t = torch.arange(length, dtype=torch.float32)
    daily = torch.sin(2 * math.pi * t / 24 + station)
    weekly = 0.4 * torch.cos(2 * math.pi * t / 168)
    noise = (0.05 + 0.25 * station) * torch.randn(length, generator=g)
    return daily + weekly + noise


def windows(series, cfg):
    xs, ys = [], []
    span = cfg.history + cfg.horizon
    for i in range(len(series) - span):
        xs.append(series[i : i + cfg.history])
        ys.append(series[i + cfg.history : i + span])
    return torch.stack(xs).unsqueeze(-1), torch.stack(ys)


class LoadNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.rnn = nn.GRU(1, cfg.hidden, batch_first=True)
        self.head = nn.Linear(cfg.hidden, cfg.horizon)

    def forward(self, x):
        _, h = self.rnn(x)
        return self.head(h[-1])


class Plateau:
    """Counts the epochs that brought no progress."""

    def __init__(self, patience, min_delta):
        self.patience = patience
        self.min_delta = min_delta
        self.best = float("inf")
        self.bad = 0

    def update(self, value):
        if value < self.best - self.min_delta:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


def validate(model, x, y):
    model.eval()
    with torch.no_grad():
        mae = (model(x) - y).abs().mean()
    model.train()
    return mae.item()


def main():
    cfg = Settings()
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(11)

    x, y = windows(substation_series(rank, cfg.windows + cfg.history + cfg.horizon), cfg)
    cut = int(0.75 * len(x))
    loader = DataLoader(TensorDataset(x[:cut], y[:cut]), cfg.batch, shuffle=True, drop_last=True)
    model = DDP(LoadNet(cfg))
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    plateau = Plateau(cfg.patience, cfg.min_delta)

    for epoch in range(cfg.max_epochs):
        for bx, by in loader:
            opt.zero_grad()
            nn.functional.smooth_l1_loss(model(bx), by).backward()
            opt.step()
        mae = validate(model.module, x[cut:], y[cut:])
        world_mae = torch.tensor(mae)
        dist.all_reduce(world_mae)
        mae = world_mae.item() / dist.get_world_size()
        if rank == 0:
            print(f"epoch {epoch:02d} mae {mae:.4f}", flush=True)
        if plateau.update(mae):
            break

    dist.barrier()
    if rank == 0:
        torch.save({"model": model.module.state_dict(), "cfg": vars(cfg)}, cfg.out)
        print("saved", cfg.out)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
