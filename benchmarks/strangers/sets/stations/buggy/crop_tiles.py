"""Crop type segmentation from multi-spectral tiles (patch classifier).

    torchrun --nproc_per_node 2 crop_tiles.py
"""
import os
import random
from types import SimpleNamespace

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, Sampler

CFG = SimpleNamespace(tiles=480, bands=9, crops=5, batch=24, epochs=4, lr=2e-3, seed=1234, previews=3)


class Tiles(Dataset):
    def __init__(self, cfg):
        g = torch.Generator().manual_seed(7)
        self.y = torch.randint(cfg.crops, (cfg.tiles,), generator=g)
        signature = torch.randn(cfg.crops, cfg.bands, generator=g)
        noise = torch.randn(cfg.tiles, cfg.bands, 8, 8, generator=g)
        self.x = signature[self.y][:, :, None, None] * 0.4 + noise

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i], i


class StridedShuffle(Sampler):
    """One permutation per pass, dealt out to the processes like cards."""

    def __init__(self, size, rank, world):
        self.size, self.rank, self.world = size, rank, world

    def __len__(self):
        return self.size // self.world

    def __iter__(self):
        order = torch.randperm(self.size)
        usable = len(self) * self.world
        return iter(order[self.rank:usable:self.world].tolist())


class PatchNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(cfg.bands, 16, 3, padding=1), nn.ReLU(), nn.Dropout2d(0.1),
            nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(16, cfg.crops)

    def forward(self, x):
        return self.head(self.drop(self.body(x)))


def seed_everything(seed):
    random.seed(seed)
    torch.manual_seed(seed)


class PreviewWriter:
    """Predictive spread of a few tiles for the dashboard."""

    def __init__(self, dataset, n, draws=8):
        self.dataset, self.n, self.draws = dataset, n, draws

    @torch.no_grad()
    def __call__(self, net, epoch):
        pick = torch.randint(len(self.dataset), (self.n,))
        x = torch.stack([self.dataset[int(i)][0] for i in pick])
        net.train()
        spread = torch.stack([net(x).softmax(1) for _ in range(self.draws)]).std(0).mean()
        print(f"epoch {epoch} preview tiles {pick.tolist()} spread {spread:.4f}", flush=True)


def main(cfg):
    dist.init_process_group("gloo")
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    seed_everything(cfg.seed)

    data = Tiles(cfg)
    sampler = StridedShuffle(len(data), rank, world)
    loader = DataLoader(data, batch_size=cfg.batch, sampler=sampler, drop_last=True)
    model = DistributedDataParallel(PatchNet(cfg))
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    preview = PreviewWriter(data, cfg.previews) if rank == 0 else None

    for epoch in range(cfg.epochs):
        hits, seen = 0, 0
        for x, y, _ in loader:
            out = model(x)
            loss = nn.functional.cross_entropy(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            hits += int((out.argmax(1) == y).sum())
            seen += len(y)
        stat = torch.tensor([hits, seen], dtype=torch.float64)
        dist.all_reduce(stat)
        if rank == 0:
            print(f"epoch {epoch} accuracy {stat[0] / stat[1]:.3f}", flush=True)
        if preview is not None:
            preview(model.module, epoch)
        dist.barrier()

    dist.destroy_process_group()


if __name__ == "__main__":
    main(CFG)
