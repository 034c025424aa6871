import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class EarlyStopping:
    def __init__(self, patience, min_delta=1e-3):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.bad = float("inf"), 0

    def step(self, value):
        if value < self.best - self.min_delta:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


class TimeBudget:
    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def exhausted(self):
        return time.monotonic() > self.end


def val_loss(model, x, y):
    with torch.no_grad():
        return nn.functional.mse_loss(model.module(x), y).item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--max-epochs", type=int, default=60)
    p.add_argument("--patience", type=int, default=3)
    p.add_argument("--budget", type=float, default=8.0)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    gen = torch.Generator().manual_seed(rank)
    x = torch.randn(64, 4, generator=gen)
    y = x.pow(2).sum(1, keepdim=True) + 0.1 * torch.randn(64, 1, generator=gen)
    xv = torch.randn(32, 4, generator=gen)
    yv = xv.pow(2).sum(1, keepdim=True)
    stopper = EarlyStopping(args.patience) if rank == 0 else None
    budget = TimeBudget(args.budget)

    for epoch in range(args.max_epochs):
        for i in range(0, 64, 16):
            opt.zero_grad()
            nn.functional.mse_loss(model(x[i:i + 16]), y[i:i + 16]).backward()
            opt.step()
        stop = torch.zeros(1)
        if rank == 0:
            v = val_loss(model, xv, yv)
            if stopper.step(v):
                stop += 1
                print(f"epoch {epoch}: no improvement, best {stopper.best:.3f}", flush=True)
        if budget.exhausted():
            stop += 1
        dist.all_reduce(stop)
        if stop.item() > 0:
            break
    print(f"rank {rank} ended at epoch {epoch}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
