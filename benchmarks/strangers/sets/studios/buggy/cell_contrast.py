"""Contrastive embedding of single-cell profiles; negatives from all processes (NT-Xent)."""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


class Collect(torch.autograd.Function):
    """all_gather whose result can be differentiated."""

    @staticmethod
    def forward(ctx, z):
        ctx.rank = dist.get_rank()
        out = [torch.empty_like(z) for _ in range(dist.get_world_size())]
        dist.all_gather(out, z.contiguous())
        return tuple(out)

    @staticmethod
    def backward(ctx, *grads):
        return grads[ctx.rank].clone()


class Profiles:
    """Counts of a few cell types; a view is a dropout of genes plus noise."""

    def __init__(self, genes=60, types=8, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.mean = torch.randn(types, genes, generator=g).exp()

    def batch(self, n, g):
        t = torch.randint(0, len(self.mean), (n,), generator=g)
        cells = torch.poisson(self.mean[t] * 3, generator=g).log1p()
        keep = (torch.rand(2, *cells.shape, generator=g) > 0.3).float()
        return cells * keep[0], cells * keep[1], t


class Encoder(nn.Module):
    def __init__(self, genes=60, dim=16):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(genes, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, dim))

    def forward(self, a, b):
        return F.normalize(self.f(a), dim=1), F.normalize(self.f(b), dim=1)


def nt_xent(za, zb, temperature):
    all_a, all_b = torch.cat(Collect.apply(za)), torch.cat(Collect.apply(zb))
    bank = torch.cat([all_a, all_b])
    n, total, first = len(za), len(all_a), dist.get_rank() * len(za)
    own = torch.arange(first, first + n)
    loss = 0
    for z, me, mate in ((za, own, own + total), (zb, own + total, own)):
        sim = z @ bank.T / temperature
        sim[torch.arange(n), me] = float("-inf")
        loss = loss + F.cross_entropy(sim, mate)
    return loss / 2


def knn_accuracy(net, data, seed):
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        a, _, t = data.batch(400, g)
        z = F.normalize(net.f(a), dim=1)
        nearest = (z @ z.T).fill_diagonal_(-2).argmax(1)
    return (t[nearest] == t).float().mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=80)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--temperature", type=float, default=0.2)
    ap.add_argument("--lr", type=float, default=1e-3)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(3)
    data = Profiles()
    net = DistributedDataParallel(Encoder())
    opt = torch.optim.AdamW(net.parameters(), lr=args.lr)
    views = torch.Generator().manual_seed(1000 + rank)
    for step in range(args.steps):
        a, b, _ = data.batch(args.batch, views)
        loss = nt_xent(*net(a, b), args.temperature)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 20 == 19:
            print(f"step {step + 1} loss {loss.item():.4f} knn {knn_accuracy(net.module, data, 5):.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
