"""Gradient accumulation where the last window of the epoch is shorter."""
import argparse
from contextlib import nullcontext

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def run_epoch(model, loader, opt, accum):
    n = len(loader)
    opt.zero_grad()
    total = 0.0
    for k, (x, y) in enumerate(loader):
        first = k // accum * accum
        window = min(accum, n - first)
        boundary = k == first + window - 1
        ctx = nullcontext() if boundary else model.no_sync()
        with ctx:
            loss = nn.functional.cross_entropy(model(x), y)
            (loss / window).backward()
        total += loss.item()
        if boundary:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
    return total / n


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--accum", type=int, default=4)
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--bs", type=int, default=8)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    y = torch.randint(0, 5, (416,), generator=g)
    ds = TensorDataset(torch.randn(5, 20, generator=g)[y] + torch.randn(416, 20, generator=g), y)
    sampler = DistributedSampler(ds)
    loader = DataLoader(ds, args.bs, sampler=sampler)
    model = DDP(nn.Sequential(nn.Linear(20, 32), nn.GELU(), nn.Linear(32, 5)))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        loss = run_epoch(model, loader, opt, args.accum)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} rank0 loss {loss:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
