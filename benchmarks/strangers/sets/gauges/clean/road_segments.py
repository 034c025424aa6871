"""Road graph extraction from aerial tiles: centre line everywhere, junction geometry where there is one.

    torchrun --nproc_per_node=2 road_segments.py
"""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def tiles(n=320, rural_from=200):
    """Tiles are stored by district; the last districts hardly have any junctions."""
    g = torch.Generator().manual_seed(12)
    x = torch.randn(n, 3, 16, 16, generator=g)
    p = torch.full((n,), 0.6)
    p[rural_from:] = 0.12
    junction = torch.rand(n, generator=g) < p
    where = torch.rand(n, 2, generator=g)
    x[junction, 2] += 1.5
    line = (x[:, 0] > 0.3).float()
    return TensorDataset(x, line, junction, where)


class RoadNet(nn.Module):
    def __init__(self, ch=12):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(3, ch, 3, padding=1), nn.GELU(), nn.Conv2d(ch, ch, 3, padding=1), nn.GELU())
        self.line = nn.Conv2d(ch, 1, 1)
        self.is_junction = nn.Linear(ch, 1)
        self.position = nn.Sequential(nn.Linear(ch, ch), nn.GELU(), nn.Linear(ch, 2))

    def forward(self, x):
        h = self.trunk(x)
        pooled = h.mean((2, 3))
        return {"line": self.line(h).squeeze(1), "junction": self.is_junction(pooled).squeeze(1), "position": self.position(pooled)}


class RoadLoss(nn.Module):
    def __init__(self, w_junction=0.5, w_position=2.0):
        super().__init__()
        self.w_junction, self.w_position = w_junction, w_position

    def forward(self, out, line, junction, where):
        loss = F.binary_cross_entropy_with_logits(out["line"], line)
        loss = loss + self.w_junction * F.binary_cross_entropy_with_logits(out["junction"], junction.float())
        found = junction.nonzero().squeeze(1)
        if len(found):
            loss = loss + self.w_position * F.smooth_l1_loss(out["position"][found], where[found])
        else:
            loss = loss + 0.0 * out["position"].sum()
        return loss


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch", type=int, default=8)
    a = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    data = tiles()
    sampler = DistributedSampler(data, shuffle=False)
    loader = DataLoader(data, a.batch, sampler=sampler)
    model = DDP(RoadNet())
    crit = RoadLoss()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for epoch in range(a.epochs):
        for i, (x, line, junction, where) in enumerate(loader):
            loss = crit(model(x), line, junction, where)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if rank == 0 and i % 5 == 0:
                print(f"epoch {epoch} batch {i} loss {loss.item():.4f}", flush=True)
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
