"""A small GPT on arithmetic sequences; large batches by accumulation of micro-batches.

    torchrun --nproc_per_node=2 gpt_accumulate.py
"""
import contextlib
import time
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class GPTConfig:
    vocab: int = 64
    block: int = 16
    dim: int = 192
    heads: int = 4
    layers: int = 4


@dataclass
class TrainConfig:
    micro_batch: int = 4
    accumulate: int = 8
    steps: int = 10
    lr: float = 1e-3


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(c.dim), nn.LayerNorm(c.dim)
        self.qkv, self.proj = nn.Linear(c.dim, 3 * c.dim), nn.Linear(c.dim, c.dim)
        self.mlp = nn.Sequential(nn.Linear(c.dim, 4 * c.dim), nn.GELU(), nn.Linear(4 * c.dim, c.dim))
        self.heads = c.heads

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.ln1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.tok, self.pos = nn.Embedding(c.vocab, c.dim), nn.Embedding(c.block, c.dim)
        self.layers = nn.Sequential(*[Layer(c) for _ in range(c.layers)])
        self.head = nn.Linear(c.dim, c.vocab)

    def forward(self, ids):
        return self.head(self.layers(self.tok(ids) + self.pos.weight[: ids.shape[1]]))


class Trainer:
    def __init__(self, model, cfg, c):
        self.model, self.cfg, self.c = model, cfg, c
        self.opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
        self.g = torch.Generator().manual_seed(dist.get_rank())

    def batch(self):
        start = torch.randint(0, self.c.vocab, (self.cfg.micro_batch, 1), generator=self.g)
        step = torch.randint(1, 6, (self.cfg.micro_batch, 1), generator=self.g)
        seq = (start + step * torch.arange(self.c.block + 1)) % self.c.vocab
        return seq[:, :-1], seq[:, 1:]

    def loss(self):
        x, y = self.batch()
        return F.cross_entropy(self.model(x).flatten(0, 1), y.flatten()) / self.cfg.accumulate

    def micro_step(self, last):
        sync = contextlib.nullcontext() if last else self.model.no_sync()
        loss = self.loss()
        with sync:
            loss.backward()
        return loss.item()

    def step(self):
        self.opt.zero_grad(set_to_none=True)
        n = self.cfg.accumulate
        total = sum(self.micro_step(last=i == n - 1) for i in range(n))
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.opt.step()
        return total


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    c, cfg = GPTConfig(), TrainConfig()
    trainer = Trainer(DDP(GPT(c)), cfg, c)
    for step in range(cfg.steps):
        begin = time.perf_counter()
        loss = trainer.step()
        if dist.get_rank() == 0:
            print(f"step {step} loss {loss:.3f} {1000 * (time.perf_counter() - begin):.0f} ms", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
