"""Sharded training of a sequence tagger; spiky gradients, hence the clipping."""
from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp.wrap import ModuleWrapPolicy


@dataclass(frozen=True)
class Settings:
    vocab: int = 50
    tags: int = 6
    dim: int = 32
    layers: int = 2
    max_norm: float = 0.3
    steps: int = 30
    batch: int = 8
    lr: float = 0.2


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        return self.norm(x + self.rnn(x)[0])


class Tagger(nn.Module):
    def __init__(self, s: Settings):
        super().__init__()
        self.emb = nn.Embedding(s.vocab, s.dim)
        self.layers = nn.Sequential(*[Layer(s.dim) for _ in range(s.layers)])
        self.out = nn.Linear(s.dim, s.tags)

    def forward(self, tok):
        return self.out(self.layers(self.emb(tok)))


@contextlib.contextmanager
def process_group(backend="gloo"):
    dist.init_process_group(backend)
    try:
        yield dist.get_rank(), dist.get_world_size()
    finally:
        dist.destroy_process_group()


@contextlib.contextmanager
def timed(label, enabled):
    t0 = time.perf_counter()
    yield
    if enabled:
        print(f"{label}: {time.perf_counter() - t0:.2f}s", flush=True)


def sentences(s: Settings, rank: int):
    g = torch.Generator().manual_seed(300 + rank)
    while True:
        tok = torch.randint(0, s.vocab, (s.batch, 14), generator=g)
        yield tok, (tok + torch.roll(tok, 1, 1)) % s.tags


def train(s: Settings, rank: int):
    torch.manual_seed(0)
    model = FSDP(Tagger(s), auto_wrap_policy=ModuleWrapPolicy({Layer}), device_id=torch.device("cpu"))
    opt = torch.optim.SGD(model.parameters(), lr=s.lr)
    for step, (tok, tag) in zip(range(s.steps), sentences(s, rank)):
        loss = nn.functional.cross_entropy(model(tok).flatten(0, 1), tag.flatten())
        opt.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), s.max_norm)
        opt.step()
        if step % 10 == 0:
            print(f"rank {rank} step {step} loss {loss.item():.3f} grad norm {float(norm):.4f}", flush=True)


if __name__ == "__main__":
    settings = Settings(steps=int(os.environ.get("STEPS", 30)))
    with process_group() as (rank, world):
        with timed("training", rank == 0):
            train(settings, rank)
