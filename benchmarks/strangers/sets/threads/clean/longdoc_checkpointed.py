"""Long-document tagger with activation checkpointing to save memory."""
import argparse
import math
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.att = Attention(d, heads)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x):
        x = x + self.att(self.n1(x))
        return x + self.mlp(self.n2(x))


class Tagger(nn.Module):
    def __init__(self, args):
        super().__init__()
        d = args.dim
        self.tok = nn.Embedding(args.vocab, d)
        self.segment = nn.Embedding(2, d) if args.segments else None
        self.blocks = nn.ModuleList([Block(d, args.heads) for _ in range(args.layers)])
        self.norm = nn.LayerNorm(d)
        self.out = nn.Linear(d, 3)
        self.register_buffer("pos", self.sinusoid(args.length, d), persistent=False)
        self.run_block = lambda blk, h: blk(h)

    @staticmethod
    def sinusoid(n, d):
        ang = torch.arange(n)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
        return torch.cat([ang.sin(), ang.cos()], 1)

    def gradient_checkpointing_enable(self, **kw):
        self.run_block = lambda blk, h: checkpoint(blk, h, **kw)

    def forward(self, ids, seg=None):
        h = self.tok(ids) * math.sqrt(self.tok.embedding_dim) * 0.1 + self.pos
        if seg is not None:
            h = h + self.segment(seg)
        for blk in self.blocks:
            h = self.run_block(blk, h)
        return self.out(self.norm(h))


def documents(args, rank):
    g = torch.Generator().manual_seed(60 + rank)
    while True:
        ids = torch.randint(0, args.vocab, (args.batch, args.length), generator=g)
        prev = ids.roll(1, 1)
        yield ids, (ids > prev).long() + (ids % 7 == 0).long()


def wrap(model, args):
    if args.checkpointing:
        model.gradient_checkpointing_enable(use_reentrant=False)
    return DistributedDataParallel(model, find_unused_parameters=args.segments)


def main():
    ap = argparse.ArgumentParser()
    for k, v in dict(vocab=40, dim=32, heads=4, layers=3, length=64, batch=4, steps=16).items():
        ap.add_argument(f"--{k}", type=int, default=v)
    ap.add_argument("--segments", action=argparse.BooleanOptionalAction, default=True)
    ap.add_argument("--checkpointing", action=argparse.BooleanOptionalAction, default=True)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(0)
    model = wrap(Tagger(args), args)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step, (ids, tags) in zip(range(args.steps), documents(args, rank)):
        loss = F.cross_entropy(model(ids).flatten(0, 1), tags.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 8 == 7:
            print(f"step {step + 1} loss {loss.item():.3f}", flush=True)
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
