"""Tabular regression. Launch with plain python, it spawns its own processes:

    python tab_spawn.py --workers 2
"""
import argparse
import dataclasses
import json
import os
import socket
import tempfile

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@dataclasses.dataclass
class Settings:
    workers: int = 2
    rows: int = 2000
    columns: int = 12
    hidden: int = 48
    epochs: int = 3
    batch: int = 50
    lr: float = 3e-3
    seed: int = 13
    host: str = "127.0.0.1"
    port: int = dataclasses.field(default_factory=free_port)

    @classmethod
    def load(cls, path):
        with open(path) as fh:
            return cls(**json.load(fh))

    @classmethod
    def from_cli(cls):
        ap = argparse.ArgumentParser()
        for f in dataclasses.fields(cls):
            ap.add_argument(f"--{f.name}", type=type(f.default) if f.default is not dataclasses.MISSING else int)
        given = {k: v for k, v in vars(ap.parse_args()).items() if v is not None}
        return cls(**given), given


class Standardise:
    def __init__(self, x):
        self.mu, self.sd = x.mean(0), x.std(0) + 1e-6

    def __call__(self, x):
        return (x - self.mu) / self.sd


def make_table(s: Settings):
    rng = np.random.default_rng(s.seed)
    x = rng.normal(size=(s.rows, s.columns)) * rng.uniform(0.5, 4, size=s.columns)
    y = np.sin(x[:, 0]) + 0.3 * x[:, 1] * (x[:, 2] > 0) + 0.05 * rng.normal(size=s.rows)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


class ResidualMLP(nn.Module):
    def __init__(self, s: Settings):
        super().__init__()
        self.stem = nn.Linear(s.columns, s.hidden)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(s.hidden), nn.Linear(s.hidden, s.hidden), nn.ReLU(), nn.Linear(s.hidden, s.hidden))
            for _ in range(2)
        )
        self.out = nn.Linear(s.hidden, 1)

    def forward(self, x):
        h = self.stem(x)
        for b in self.blocks:
            h = h + b(h)
        return self.out(h).squeeze(-1)


def connect(rank, s: Settings):
    dist.init_process_group("gloo", init_method=f"tcp://{s.host}:{s.port}", rank=rank, world_size=s.workers)


def worker(rank, settings_path):
    s = Settings.load(settings_path)
    connect(rank, s)
    torch.manual_seed(s.seed)
    x, y = make_table(s)
    x = Standardise(x)(x)
    ds = TensorDataset(x, y)
    sampler = DistributedSampler(ds, s.workers, rank, seed=s.seed)
    loader = DataLoader(ds, s.batch, sampler=sampler)
    net = nn.parallel.DistributedDataParallel(ResidualMLP(s))
    opt = torch.optim.AdamW(net.parameters(), lr=s.lr)
    for epoch in range(s.epochs):
        sampler.set_epoch(epoch)
        acc = torch.zeros(2)
        for xb, yb in loader:
            loss = nn.functional.mse_loss(net(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            acc += torch.tensor([loss.item() * len(yb), len(yb)])
        dist.all_reduce(acc)
        if rank == 0:
            print(f"epoch {epoch} mse {acc[0] / acc[1]:.4f}", flush=True)
    dist.destroy_process_group()


def main():
    s, given = Settings.from_cli()
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "settings.json")
        with open(path, "w") as fh:
            json.dump(given, fh)
        print(f"starting {s.workers} workers", flush=True)
        mp.spawn(worker, args=(path,), nprocs=s.workers)


if __name__ == "__main__":
    main()
