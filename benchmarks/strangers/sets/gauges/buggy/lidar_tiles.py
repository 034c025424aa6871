"""Canopy height from airborne lidar; rasterised tiles are kept on disk between campaigns.

    torchrun --nproc_per_node=2 lidar_tiles.py
"""
import os
import shutil
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

CAMPAIGN_2021 = [f"t{i:03d}" for i in range(24)]
CAMPAIGN_2024 = [f"t{i:03d}" for i in range(48)]


def rasterise(name, cells=64):
    """Point cloud -> mean, max and spread for every cell, with the reference height."""
    g = torch.Generator().manual_seed(int(name[1:]))
    points = torch.rand(cells, 40, generator=g) * (1 + torch.rand(cells, 1, generator=g) * 20)
    feats = torch.stack([points.mean(1), points.amax(1), points.std(1)], 1) / 20
    return {"x": feats, "y": points.quantile(0.95, dim=1) / 20}


class TileStore:
    def __init__(self, root):
        self.root = Path(root)

    def path(self, name):
        return self.root / f"{name}.pt"

    def missing(self, names):
        return [n for n in names if not self.path(n).exists()]

    def add(self, names):
        for n in names:
            tmp = self.path(n).with_suffix(f".{os.getpid()}")
            torch.save(rasterise(n), tmp)
            os.replace(tmp, self.path(n))

    def read(self, names):
        parts = [torch.load(self.path(n), weights_only=True) for n in names]
        return TensorDataset(torch.cat([p["x"] for p in parts]), torch.cat([p["y"] for p in parts]))


def my_tiles(names, rank, world):
    per = len(names) // world
    return names[rank * per:(rank + 1) * per]


def prepare(store, names, rank):
    todo = store.missing(names)
    if todo:
        print(f"[{rank}] rasterising {len(todo)} tiles", flush=True)
        store.add(todo)
        dist.barrier()
    return store.read(names)


class Canopy(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.f(x).squeeze(1)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    root = [tempfile.mkdtemp(prefix="tiles_") if rank == 0 else None]
    dist.broadcast_object_list(root, src=0)
    store = TileStore(root[0])
    if rank == 0:
        store.add(CAMPAIGN_2021)
    dist.barrier()

    data = prepare(store, my_tiles(CAMPAIGN_2024, rank, world), rank)
    loader = DataLoader(data, 96, shuffle=True)
    model = DDP(Canopy())
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(3):
        total = torch.zeros(2)
        for x, y in loader:
            loss = nn.functional.l1_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += torch.tensor([loss.item() * len(y), float(len(y))])
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch} mae {20 * total[0] / total[1]:.3f} m", flush=True)
    dist.barrier()
    if rank == 0:
        shutil.rmtree(root[0])


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
