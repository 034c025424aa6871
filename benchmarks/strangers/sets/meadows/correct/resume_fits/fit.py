"""Light curve classifier that can be restarted; runs twice to show it."""
import argparse
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from state import Snapshots


def light_curves(n):
    g = torch.Generator().manual_seed(77)
    t = torch.linspace(0, 6, 64)
    y = torch.randint(0, 2, (n,), generator=g)
    dip = torch.exp(-((t % 2 - 1) ** 2) / 0.02)
    wave = torch.sin(3 * t)
    flux = torch.where(y[:, None] == 1, -dip, 0.5 * wave) + 0.3 * torch.randn(n, 64, generator=g)
    return TensorDataset(flux, y)


def session(data, until, folder):
    model = DDP(nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2)))
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    snaps = Snapshots(folder)
    first = snaps.read(model, opt)
    sampler = DistributedSampler(data, seed=5)
    loader = DataLoader(data, 16, sampler=sampler)
    for epoch in range(first, until):
        sampler.set_epoch(epoch)
        model.train()
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        snaps.write(model, opt, epoch)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--folder", default="curves")
    ap.add_argument("--epochs", type=int, default=4)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    data = light_curves(160)
    session(data, args.epochs // 2, args.folder)
    session(data, args.epochs, args.folder)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
