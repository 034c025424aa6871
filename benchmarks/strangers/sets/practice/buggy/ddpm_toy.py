"""DDPM on two moons.  Batches are drawn on the fly, `--batch` is per process."""
import argparse
import math
import random

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class EpsNet(nn.Module):
    def __init__(self, h=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, h), nn.SiLU(), nn.Linear(h, h), nn.SiLU(), nn.Linear(h, 2))

    def forward(self, x, t):
        a = t[:, None] * math.pi / 2
        return self.net(torch.cat([x, a.sin(), a.cos()], 1))


def moons(n):
    th = math.pi * torch.rand(n)
    up = torch.rand(n) < 0.5
    x = torch.where(up, th.cos(), 1 - th.cos())
    y = torch.where(up, th.sin(), 0.5 - th.sin())
    return torch.stack([x, y], 1) + 0.05 * torch.randn(n, 2)


def diffusion_loss(net, x0):
    t = torch.rand(len(x0))
    abar = (t * math.pi / 2).cos().square()[:, None]
    eps = torch.randn_like(x0)
    xt = abar.sqrt() * x0 + (1 - abar).sqrt() * eps
    return (net(xt, t) - eps).square().mean()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=42)
    ap.add_argument("--steps", type=int, default=60)
    ap.add_argument("--batch", type=int, default=64)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    seed_everything(args.seed)
    net = DDP(EpsNet())
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
    avg = torch.zeros(())
    for step in range(1, args.steps + 1):
        loss = diffusion_loss(net, moons(args.batch))
        opt.zero_grad()
        loss.backward()
        opt.step()
        avg += loss.detach()
        if step % 20 == 0:
            dist.all_reduce(avg)
            if rank == 0:
                print(f"step {step} ({step * args.batch * world} samples) loss {avg.item() / world / 20:.4f}", flush=True)
            avg.zero_()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
