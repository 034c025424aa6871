from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass(frozen=True)
class Config:
    steps: int = 240
    batch: int = 64
    timesteps: int = 50
    lr: float = 2e-3
    ema: float = 0.99
    seed: int = 42


class Forward:
    """The noising process: draws timesteps and noise from a generator of its own."""

    def __init__(self, cfg: Config):
        beta = torch.linspace(1e-4, 0.1, cfg.timesteps)
        self.keep = torch.cumprod(1 - beta, 0)
        self.T = cfg.timesteps
        self.gen = torch.Generator().manual_seed(cfg.seed)

    def __call__(self, x0):
        t = torch.randint(0, self.T, (len(x0),), generator=self.gen)
        eps = torch.randn(x0.shape, generator=self.gen)
        a = self.keep[t].unsqueeze(1)
        return a.sqrt() * x0 + (1 - a).sqrt() * eps, t, eps


class Denoiser(nn.Module):
    def __init__(self, hidden=96):
        super().__init__()
        self.register_buffer("freq", torch.exp(torch.linspace(0, -4, 8)))
        self.net = nn.Sequential(nn.Linear(2 + 16, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(),
                                 nn.Linear(hidden, 2))

    def forward(self, x, t):
        ang = t.float().unsqueeze(1) * self.freq
        return self.net(torch.cat([x, ang.sin(), ang.cos()], 1))


def rings(n: int, gen: torch.Generator):
    radius = torch.randint(1, 3, (n,), generator=gen).float() + 0.05 * torch.randn(n, generator=gen)
    phi = 2 * math.pi * torch.rand(n, generator=gen)
    return torch.stack([radius * phi.cos(), radius * phi.sin()], 1)


def main(cfg: Config):
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank = dist.get_rank()
    torch.manual_seed(cfg.seed)
    net = Denoiser()
    shadow = {k: v.detach().clone() for k, v in net.named_parameters()}
    ddp = DDP(net)
    opt = torch.optim.AdamW(ddp.parameters(), cfg.lr)
    data = torch.Generator().manual_seed(1000 + rank)
    q = Forward(cfg)
    for step in range(1, cfg.steps + 1):
        xt, t, eps = q(rings(cfg.batch, data))
        loss = (ddp(xt, t) - eps).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            for k, p in net.named_parameters():
                shadow[k].lerp_(p, 1 - cfg.ema)
        if step % 60 == 0:
            print(f"rank {rank} step {step} loss {loss.item():.4f} mean t {t.float().mean().item():.2f} "
                  f"|eps| {eps.norm().item():.3f}", flush=True)


if __name__ == "__main__":
    main(Config())
    dist.destroy_process_group()
