"""Terrain relief as a coordinate network (height from position).

Each process draws its own points; the network is shared.
"""
import math
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 250
POINTS = 256
LR = 2e-3


def height(xy):
    x, y = xy[:, :1], xy[:, 1:]
    return torch.sin(7 * x) * torch.cos(5 * y) + 0.5 * torch.sin(13 * x * y)


class Waves(nn.Module):
    """Coordinates to sines and cosines of random frequencies."""

    def __init__(self, inputs, bands, sigma):
        super().__init__()
        self.B = sigma * torch.randn(inputs, bands)

    def forward(self, xy):
        a = 2 * math.pi * xy @ self.B
        return torch.cat([a.sin(), a.cos()], dim=1)


class Relief(nn.Module):
    def __init__(self, bands=64, sigma=1.5, width=96, depth=2):
        super().__init__()
        self.enc = Waves(2, bands, sigma)
        layers, d = [], 2 * bands
        for _ in range(depth):
            layers += [nn.Linear(d, width), nn.ReLU()]
            d = width
        self.mlp = nn.Sequential(*layers, nn.Linear(d, 1))

    def forward(self, xy):
        return self.mlp(self.enc(xy))


def grid(side=32):
    t = torch.linspace(0, 1, side)
    return torch.cartesian_prod(t, t)


def psnr(net):
    with torch.no_grad():
        xy = grid()
        mse = (net(xy) - height(xy)).pow(2).mean()
    return -10 * torch.log10(mse / 4).item()


def train(rank, world):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = "29683"
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(1000 + rank)
    net = DistributedDataParallel(Relief())
    opt = torch.optim.Adam(net.parameters(), lr=LR)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=LR * 2, total_steps=STEPS)
    for step in range(STEPS):
        xy = torch.rand(POINTS, 2)
        loss = (net(xy) - height(xy)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if rank == 0 and step % 50 == 49:
            print(f"step {step + 1} loss {loss.item():.5f}", flush=True)
    if rank == 0:
        print(f"psnr {psnr(net.module):.2f} dB", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(2,), nprocs=2)
