"""Focal-modulation style image model with optional activation checkpointing."""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.utils.checkpoint as checkpoint


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.gate = nn.Linear(dim, 2 * dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        q, g = self.gate(self.norm(x)).chunk(2, -1)
        x = x + q * g.sigmoid()
        return x + self.mlp(x)


class Stage(nn.Module):
    def __init__(self, dim, depth, use_checkpoint):
        super().__init__()
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.use_checkpoint = use_checkpoint

    def forward(self, x):
        for blk in self.blocks:
            if self.use_checkpoint and self.training:
                x = checkpoint.checkpoint(blk, x, use_reentrant=False)
            else:
                x = blk(x)
        return x


class FocalNet(nn.Module):
    def __init__(self, dim=16, depths=(2, 2), classes=5, use_checkpoint=False):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, 4, 4)
        self.stages = nn.ModuleList(Stage(dim, d, use_checkpoint) for d in depths)
        self.head = nn.Linear(dim, classes)

    def forward(self, img):
        x = self.patch(img).flatten(2).transpose(1, 2)
        for s in self.stages:
            x = s(x)
        return self.head(x.mean(1))


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--local_rank", type=int, default=int(os.environ.get("LOCAL_RANK", 0)))
    p.add_argument("--no-checkpoint", dest="use_checkpoint", action="store_false")
    p.add_argument("--iters", type=int, default=10)
    return p.parse_args()


def main(args):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = FocalNet(use_checkpoint=args.use_checkpoint)
    net = nn.parallel.DistributedDataParallel(net, find_unused_parameters=True)
    opt = torch.optim.AdamW(net.parameters(), 1e-3)
    g = torch.Generator().manual_seed(args.local_rank)
    for it in range(args.iters):
        x = torch.randn(4, 3, 16, 16, generator=g)
        y = torch.randint(0, 5, (4,), generator=g)
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    if args.local_rank == 0:
        print(f"iter {it} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main(parse())
    dist.destroy_process_group()
