"""Barlow Twins on mass spectra (synthetic). mp.spawn, one process per worker."""
import argparse
import os
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dist_fn
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Spectra:
    """Peaks at positions of the compound; two views differ by jitter and dropout of peaks."""

    def __init__(self, compounds=12, bins=64, seed=6):
        g = torch.Generator().manual_seed(seed)
        self.base = torch.zeros(compounds, bins)
        for c in range(compounds):
            self.base[c, torch.randperm(bins, generator=g)[:8]] = 1.0

    def views(self, batch, g):
        which = torch.randint(0, len(self.base), (batch,), generator=g)
        clean = self.base[which]

        def view():
            keep = (torch.rand(clean.shape, generator=g) > 0.2).float()
            return clean * keep + 0.1 * torch.randn(clean.shape, generator=g)

        return view(), view()


class BarlowLoss(nn.Module):
    def __init__(self, dim, lam=5e-3):
        super().__init__()
        self.lam = lam
        self.dim = dim

    def forward(self, za, zb):
        world = dist.get_world_size()
        za = (za - za.mean(0)) / (za.std(0) + 1e-4)
        zb = (zb - zb.mean(0)) / (zb.std(0) + 1e-4)
        c = za.T @ zb / (len(za) * world)
        dist.all_reduce(c)
        eye = torch.eye(self.dim)
        on = ((c.diagonal() - 1) ** 2).sum()
        off = ((c * (1 - eye)) ** 2).sum()
        return on + self.lam * off


def encoder(dim):
    return nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, dim))


def worker(rank, args, rendezvous):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=args.world)
    torch.manual_seed(0)
    model = DDP(encoder(args.dim))
    criterion = BarlowLoss(args.dim)
    opt = torch.optim.SGD(model.parameters(), lr=args.lr)
    spectra, g = Spectra(), torch.Generator().manual_seed(50 + rank)
    for step in range(args.steps):
        a, b = spectra.views(args.batch, g)
        za, zb = model(torch.cat([a, b])).chunk(2)
        loss = criterion(za, zb)
        opt.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1e6)
        opt.step()
        if rank == 0 and step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f} |g| {norm.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--world", type=int, default=2)
    p.add_argument("--steps", type=int, default=61)
    p.add_argument("--batch", type=int, default=24)
    p.add_argument("--dim", type=int, default=10)
    p.add_argument("--lr", type=float, default=0.01)
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        mp.spawn(worker, args=(args, os.path.join(tmp, "rdzv")), nprocs=args.world)
