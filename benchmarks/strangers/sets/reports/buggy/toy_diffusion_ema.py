"""Denoising diffusion on a two-moons cloud with a Karras-style weight average.

    torchrun --nproc_per_node=2 toy_diffusion_ema.py
"""
import copy
import math

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def moons(n, g):
    t = math.pi * torch.rand(n, generator=g)
    up = torch.rand(n, generator=g) < 0.5
    x = torch.where(up, torch.cos(t), 1 - torch.cos(t))
    y = torch.where(up, torch.sin(t), 0.5 - torch.sin(t))
    return torch.stack([x, y], 1) + 0.05 * torch.randn(n, 2, generator=g)


class NoiseNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.register_buffer("freq", torch.tensor([1.0, 2.0, 4.0, 8.0]))
        self.net = nn.Sequential(nn.Linear(10, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2))

    def forward(self, x, t):
        ang = math.pi * t[:, None] * self.freq
        return self.net(torch.cat([x, ang.sin(), ang.cos()], dim=1))


class EMA:
    """Averaged weights; the online network returns to them from time to time."""

    def __init__(self, model, beta=0.98, update_after=20, restart_every=50):
        self.online = model
        self.average = copy.deepcopy(model).requires_grad_(False)
        self.beta, self.update_after, self.restart_every = beta, update_after, restart_every
        self.calls = 0

    def _pairs(self):
        return zip(self.average.parameters(), self.online.parameters())

    @torch.no_grad()
    def update(self):
        self.calls += 1
        if self.calls <= self.update_after:
            self.average.load_state_dict(self.online.state_dict())
            return
        for avg, p in self._pairs():
            avg.lerp_(p, 1 - self.beta)
        if self.calls % self.restart_every == 0:
            for avg, p in self._pairs():
                p.copy_(avg)


class Diffusion:
    def __init__(self, rank):
        torch.manual_seed(1)
        self.rank = rank
        self.model = DDP(NoiseNet())
        self.ema = EMA(self.model.module)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=2e-3)
        self.g = torch.Generator().manual_seed(60 + rank)

    def loss(self, n):
        x, t = moons(n, self.g), torch.rand(n, generator=self.g)
        eps = torch.randn(n, 2, generator=self.g)
        alpha, sigma = torch.cos(t * math.pi / 2)[:, None], torch.sin(t * math.pi / 2)[:, None]
        return (self.model(alpha * x + sigma * eps, t) - eps).pow(2).mean()

    def fit(self, steps=240, log_every=60):
        for step in range(1, steps + 1):
            loss = self.loss(64)
            self.opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.opt.step()
            if self.rank == 0:
                self.ema.update()
                if step % log_every == 0:
                    print(f"step {step} loss {loss.item():.4f}", flush=True)

    @torch.no_grad()
    def sample(self, n=200, steps=20):
        net, x = self.ema.average, torch.randn(n, 2, generator=self.g)
        grid = torch.linspace(0.98, 0.02, steps)
        for a, b in zip(grid[:-1], grid[1:]):
            eps = net(x, a.expand(n))
            x0 = (x - math.sin(a * math.pi / 2) * eps) / math.cos(a * math.pi / 2)
            x = math.cos(b * math.pi / 2) * x0 + math.sin(b * math.pi / 2) * eps
        return x


def main():
    dist.init_process_group("gloo")
    job = Diffusion(dist.get_rank())
    job.fit()
    if job.rank == 0:
        pts = job.sample()
        print(f"samples: mean {pts.mean(0).tolist()}, std {pts.std(0).tolist()}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
