"""Glyph recognition: short warm-up on synthetic fonts, then the scanned ones."""
from dataclasses import dataclass, field, replace
from typing import List

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks as default
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class Phase:
    name: str
    seed: int
    noise: float
    epochs: int = 2
    lr: float = 3e-3
    half_traffic: bool = True


@dataclass
class Plan:
    glyphs: int = 12
    per_rank: int = 160
    batch: int = 20
    phases: List[Phase] = field(default_factory=lambda: [
        Phase("synthetic", seed=1, noise=0.2),
        Phase("scanned", seed=2, noise=0.7, lr=1e-3),
    ])


class GlyphNet(nn.Module):
    def __init__(self, glyphs):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                                      nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(3))
        self.classify = nn.Linear(144, glyphs)

    def forward(self, x):
        return self.classify(self.features(x).flatten(1))


def sheets(plan, phase, rank):
    proto = torch.randn(plan.glyphs, 1, 10, 10, generator=torch.Generator().manual_seed(0))
    g = torch.Generator().manual_seed(phase.seed * 100 + rank)
    y = torch.randint(0, plan.glyphs, (plan.per_rank,), generator=g)
    return proto[y] + phase.noise * torch.randn(plan.per_rank, 1, 10, 10, generator=g), y


class Fitter:
    def __init__(self, net):
        self.net = net
        self.hooked = False

    def setup(self, phase):
        self.opt = torch.optim.Adam(self.net.parameters(), lr=phase.lr)
        if phase.half_traffic and not self.hooked:
            self.net.register_comm_hook(None, default.fp16_compress_hook)
            self.hooked = True

    def run(self, plan, phase, rank):
        self.setup(phase)
        x, y = sheets(plan, phase, rank)
        for epoch in range(phase.epochs):
            right = 0
            for b in torch.randperm(len(x)).split(plan.batch):
                out = self.net(x[b])
                self.opt.zero_grad()
                F.cross_entropy(out, y[b]).backward()
                self.opt.step()
                right += (out.argmax(1) == y[b]).sum()
            dist.all_reduce(right)
            if rank == 0:
                print(f"{phase.name} {epoch}: acc {right.item() / len(x) / dist.get_world_size():.3f}", flush=True)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    plan = Plan()
    torch.manual_seed(7)
    fitter = Fitter(DDP(GlyphNet(plan.glyphs)))
    torch.manual_seed(70 + rank)
    for phase in plan.phases:
        fitter.run(plan, phase, rank)
    probe = replace(plan.phases[-1], seed=9)
    x, y = sheets(plan, probe, rank)
    with torch.no_grad():
        hit = (fitter.net.module(x).argmax(1) == y).float().mean()
    dist.all_reduce(hit)
    if rank == 0:
        print(f"unseen {hit.item() / dist.get_world_size():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
