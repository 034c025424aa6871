"""Tiles of which each rank reads the files that are its own."""

from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

TILES = [f"tile-{number}" for number in range(64)]


class Tiles:
    def __init__(self, folder):
        self.folder = Path(folder)

    def file(self, name):
        return self.folder / f"{name}.pt"

    def read(self, names):
        parts = [torch.load(self.file(name), weights_only=True) for name in names]
        seen, wanted = [part["seen"] for part in parts], [part["wanted"] for part in parts]
        return TensorDataset(torch.cat(seen), torch.cat(wanted))


def dealt(names, rank, world_size):
    each = len(names) // world_size
    return names[rank * each : (rank + 1) * each]


def main(folder):
    dist.init_process_group("gloo")
    tiles = Tiles(folder)
    data = tiles.read(dealt(TILES, dist.get_rank(), dist.get_world_size()))
    loader = DataLoader(data, batch_size=96, shuffle=True)
    model = DDP(torch.nn.Linear(3, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(3):
        for seen, wanted in loader:
            optimizer.zero_grad()
            (model(seen)[:, 0] - wanted).abs().mean().backward()
            optimizer.step()
    dist.destroy_process_group()
