import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.utils.checkpoint as cp
from torch.nn.parallel import DistributedDataParallel


class Mlp(nn.Module):
    def __init__(self, dim, ratio=2):
        super().__init__()
        self.fc1 = nn.Linear(dim, dim * ratio)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(dim * ratio, dim)

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mix = nn.Linear(9, 9)
        self.mlp = Mlp(dim)

    def forward(self, x):
        x = x + self.mix(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.mlp(self.n2(x))


class FocalTiny(nn.Module):
    def __init__(self, dim=24, depth=3, classes=5, use_checkpoint=False):
        super().__init__()
        self.use_checkpoint = use_checkpoint
        self.embed = nn.Linear(16, dim)
        self.layers = nn.ModuleList(Layer(dim) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            if self.use_checkpoint and self.training:
                x = cp.checkpoint(layer, x, use_reentrant=False)
            else:
                x = layer(x)
        return self.head(self.norm(x).mean(1))


def get_args():
    p = argparse.ArgumentParser("focal")
    p.add_argument("--iters", type=int, default=12)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--no-checkpoint", dest="use_checkpoint", action="store_false")
    p.add_argument("--lr", type=float, default=1e-3)
    return p.parse_args()


def build_model(args):
    model = FocalTiny(use_checkpoint=args.use_checkpoint)
    n = sum(p.numel() for p in model.parameters())
    if dist.get_rank() == 0:
        print(f"params: {n}", flush=True)
    return DistributedDataParallel(model, find_unused_parameters=True)


def main():
    args = get_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = build_model(args)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    gen = torch.Generator().manual_seed(rank)
    model.train()
    for it in range(args.iters):
        y = torch.randint(0, 5, (args.batch,), generator=gen)
        x = torch.randn(args.batch, 9, 16, generator=gen) + y.view(-1, 1, 1)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and it % 4 == 0:
            print(f"iter {it} loss {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
