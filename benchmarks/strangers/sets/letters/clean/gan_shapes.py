"""Small DCGAN on drawn shapes, two processes started with spawn."""
import os
import random

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

Z, SIDE, BATCH, STEPS, HELD_OUT = 16, 16, 16, 60, 125


def generator():
    return nn.Sequential(
        nn.ConvTranspose2d(Z, 32, 4), nn.BatchNorm2d(32), nn.ReLU(),
        nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.ConvTranspose2d(16, 1, 4, 2, 1), nn.Tanh())


def critic():
    return nn.Sequential(
        nn.Conv2d(1, 16, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Conv2d(16, 32, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Flatten(), nn.Linear(32 * 16, 1))


def shapes(n, g):
    yy, xx = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    c = torch.randint(5, 11, (n, 2, 1, 1), generator=g)
    r = torch.randint(2, 5, (n, 1, 1), generator=g)
    inside = (yy - c[:, 0]).abs() + (xx - c[:, 1]).abs() <= r
    return inside.float().unsqueeze(1) * 2 - 1


def set_grad(net, flag):
    for p in net.parameters():
        p.requires_grad_(flag)


def critic_loss(D, real, fake):
    on_real = F.softplus(-D(real)).mean()
    on_fake = F.softplus(D(fake)).mean()
    return on_real + on_fake


def gather_rows(x):
    world = dist.get_world_size()
    counts = [torch.zeros(1, dtype=torch.long) for _ in range(world)]
    dist.all_gather(counts, torch.tensor([len(x)]))
    counts = [int(c) for c in counts]
    padded = x.new_zeros(max(counts), *x.shape[1:])
    padded[:len(x)] = x
    parts = [torch.empty_like(padded) for _ in range(world)]
    dist.all_gather(parts, padded)
    return torch.cat([p[:c] for p, c in zip(parts, counts)])


def frechet(a, b):
    """Diagonal Frechet distance between two sets of features."""
    mean = (a.mean(0) - b.mean(0)).square().sum()
    return (mean + (a.var(0).sqrt() - b.var(0).sqrt()).square().sum()).item()


@torch.no_grad()
def fid(G, probe, held_out, rank, world):
    mine = held_out[rank::world]
    real = gather_rows(probe(mine))
    fake = gather_rows(probe(G.module(torch.randn(len(mine), Z, 1, 1))))
    return frechet(real, fake)


def train(rank, world):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(7 + rank)
    g = torch.Generator().manual_seed(70 + rank)
    G, D = DDP(generator()), DDP(critic())
    held_out = shapes(HELD_OUT, torch.Generator().manual_seed(1))
    torch.manual_seed(99)
    probe = nn.Sequential(nn.Conv2d(1, 8, 5, 3), nn.ReLU(), nn.Flatten())
    torch.manual_seed(7 + rank)
    opt_g = torch.optim.Adam(G.parameters(), 2e-4, betas=(0.5, 0.99))
    opt_d = torch.optim.Adam(D.parameters(), 2e-4, betas=(0.5, 0.99))
    for step in range(STEPS):
        real = shapes(BATCH, g)
        with torch.no_grad():
            fake = G(torch.randn(BATCH, Z, 1, 1))
        loss_d = critic_loss(D, real, fake)
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()

        set_grad(D, False)
        loss_g = F.softplus(-D.module(G(torch.randn(BATCH, Z, 1, 1)))).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        set_grad(D, True)
        if (step + 1) % 20 == 0:
            score = fid(G, probe, held_out, rank, world)
            if rank == 0:
                print(f"{step + 1:3d}  D {loss_d.item():.3f}  G {loss_g.item():.3f}  fid {score:.2f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", str(random.randint(20000, 50000)))
    mp.spawn(train, (2,), nprocs=2)
