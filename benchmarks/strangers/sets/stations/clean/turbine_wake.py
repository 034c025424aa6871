"""Wake deficit emulator.

The encoder is replicated; the wide readout (one column block per row of
turbines) is split over the processes.  Run with

    torchrun --nproc_per_node 2 turbine_wake.py
"""
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Settings:
    inflow: int = 10
    width: int = 32
    cells: int = 96
    batch: int = 48
    steps: int = 30
    lr: float = 0.05
    max_norm: float = 0.5
    report: int = 10


class ToShards(torch.autograd.Function):
    """Identity forward, sum of the partial gradients backward."""

    @staticmethod
    def forward(ctx, h):
        return h.view_as(h)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous().clone()
        dist.all_reduce(grad)
        return grad


class Encoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.a = nn.Linear(cfg.inflow, cfg.width)
        self.b = nn.Linear(cfg.width, cfg.width)

    def forward(self, x):
        return torch.tanh(self.b(torch.tanh(self.a(x))))


class ColumnReadout(nn.Module):
    """Holds the columns [lo, hi) of the full readout."""

    def __init__(self, cfg, rank, world):
        super().__init__()
        per = cfg.cells // world
        self.lo, self.hi = rank * per, (rank + 1) * per
        self.cells = cfg.cells
        full = torch.randn(cfg.cells, cfg.width) / cfg.width ** 0.5
        self.weight = nn.Parameter(full[self.lo:self.hi].clone())
        self.bias = nn.Parameter(torch.zeros(per))

    def forward(self, h):
        return F.linear(ToShards.apply(h), self.weight, self.bias)

    def loss(self, out, target):
        part = (out - target[:, self.lo:self.hi]).pow(2).sum()
        return part / (target.size(0) * self.cells)


class Emulator:
    def __init__(self, cfg):
        self.cfg = cfg
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        torch.manual_seed(88)
        self.encoder = Encoder(cfg)
        self.readout = ColumnReadout(cfg, self.rank, self.world)
        params = list(self.encoder.parameters()) + list(self.readout.parameters())
        self.opt = torch.optim.SGD(params, lr=cfg.lr, momentum=0.9)
        self.gen = torch.Generator().manual_seed(4)
        self.truth = torch.randn(cfg.inflow, cfg.cells, generator=self.gen)
        self.truth *= torch.linspace(0.1, 4.0, cfg.cells)

    def sample(self):
        x = torch.randn(self.cfg.batch, self.cfg.inflow, generator=self.gen)
        return x, torch.tanh(x) @ self.truth

    @torch.no_grad()
    def limit_gradients(self):
        replicated = sum(p.grad.pow(2).sum() for p in self.encoder.parameters())
        sharded = sum(p.grad.pow(2).sum() for p in self.readout.parameters())
        dist.all_reduce(sharded)
        norm = (replicated + sharded).sqrt()
        scale = (self.cfg.max_norm / (norm + 1e-6)).clamp(max=1.0)
        for group in self.opt.param_groups:
            for p in group["params"]:
                p.grad.mul_(scale)
        return norm

    def step(self):
        x, y = self.sample()
        self.opt.zero_grad()
        loss = self.readout.loss(self.readout(self.encoder(x)), y)
        loss.backward()
        norm = self.limit_gradients()
        self.opt.step()
        return loss.detach(), norm

    def fit(self):
        for i in range(1, self.cfg.steps + 1):
            loss, norm = self.step()
            if i % self.cfg.report == 0:
                dist.all_reduce(loss)
                if self.rank == 0:
                    print(f"step {i:3d}  loss {loss.item():.4f}  gnorm {norm.item():.3f}", flush=True)


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    emulator = Emulator(Settings())
    emulator.fit()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
