"""Everybody passes the same context manager; the first process prepares the files."""
import contextlib
import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@contextlib.contextmanager
def zero_first(rank):
    if rank != 0:
        dist.barrier()
    try:
        yield rank == 0
    finally:
        if rank == 0:
            dist.barrier()


def prepare(path):
    if path.exists():
        return torch.load(path)
    g = torch.Generator().manual_seed(0)
    x = torch.randn(90, 7, generator=g)
    blob = {"x": x, "y": x.abs().sum(1)}
    torch.save(blob, path)
    return blob


def main():
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    with zero_first(rank) as first:
        blob = prepare(Path("prepared.pt"))
        print(f"[{rank}] {'wrote' if first else 'read'} {len(blob['x'])} rows", flush=True)
    data = TensorDataset(blob["x"], blob["y"])
    sampler = DistributedSampler(data, drop_last=False)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model = DDP(nn.Sequential(nn.Linear(7, 20), nn.ReLU(), nn.Linear(20, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = (model(x).squeeze(1) - y).abs().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    if rank == 0:
        print(f"loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
