"""One-stage detector on bird's-eye-view pillars; classification and box branches share a neck."""
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


@dataclass
class LossWeights:
    cls: float = 1.0
    box: float = 2.0


@dataclass
class Config:
    grid: int = 12
    frames: int = 64
    batch: int = 2
    epochs: int = 2
    lr: float = 2e-3
    weights: LossWeights = field(default_factory=LossWeights)


class Sweeps(Dataset):
    """Occupancy grid, centre heatmap and box size; some sweeps show an empty road."""

    def __init__(self, cfg):
        g = torch.Generator().manual_seed(21)
        self.items = []
        for _ in range(cfg.frames):
            n = int(torch.randint(0, 3, (1,), generator=g))
            heat = torch.zeros(1, cfg.grid, cfg.grid)
            size = torch.zeros(2, cfg.grid, cfg.grid)
            bev = 0.1 * torch.rand(3, cfg.grid, cfg.grid, generator=g)
            for _ in range(n):
                i, j = torch.randint(1, cfg.grid - 1, (2,), generator=g).tolist()
                wl = 0.5 + torch.rand(2, generator=g)
                heat[0, i, j], size[:, i, j] = 1.0, wl
                bev[:, i - 1:i + 2, j - 1:j + 2] += wl.mean()
            self.items.append((bev, heat, size))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class PillarHead(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.neck = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), nn.ReLU())
        self.cls_branch = nn.Conv2d(width, 1, 1)
        self.box_branch = nn.Sequential(nn.Conv2d(width, width, 1), nn.ReLU(), nn.Conv2d(width, 2, 1))

    def forward(self, bev):
        h = self.neck(bev)
        return {"heatmap": self.cls_branch(h), "size": self.box_branch(h)}


class DetectionLoss:
    def __init__(self, weights):
        self.weights = weights

    def __call__(self, preds, heat, size):
        loss = torch.zeros(2)
        loss[0] = F.binary_cross_entropy_with_logits(preds["heatmap"], heat)
        fg_mask = heat.bool().expand_as(size)
        if fg_mask.sum():
            loss[1] = F.l1_loss(preds["size"][fg_mask], size[fg_mask], reduction="sum") / heat.numel()
        loss[0] *= self.weights.cls
        loss[1] *= self.weights.box
        return loss.sum(), loss.detach()


def train(cfg):
    rank = dist.get_rank()
    torch.manual_seed(0)
    data = Sweeps(cfg)
    sampler = DistributedSampler(data, seed=5)
    loader = DataLoader(data, batch_size=cfg.batch, sampler=sampler)
    model = DDP(PillarHead())
    criterion = DetectionLoss(cfg.weights)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        sampler.set_epoch(epoch)
        seen = torch.zeros(2)
        for bev, heat, size in loader:
            optimizer.zero_grad()
            loss, parts = criterion(model(bev), heat, size)
            loss.backward()
            optimizer.step()
            seen += parts
        dist.all_reduce(seen)
        seen /= len(loader) * dist.get_world_size()
        if rank == 0:
            print(f"epoch {epoch}  cls {seen[0]:.4f}  box {seen[1]:.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train(Config())
    dist.destroy_process_group()
