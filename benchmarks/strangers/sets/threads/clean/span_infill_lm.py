"""Span infilling language model; the share of masked symbols differs from document to document."""
import os
from functools import partial
from types import SimpleNamespace as NS

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

C = NS(vocab=48, mask=0, seq=24, dim=32, heads=4, steps=40, docs=8, lr=4e-3, log=10)


class DocSource:
    """Endless documents. Even shards hold short abstracts, odd shards long reports with other statistics."""

    def __init__(self, shard):
        self.rng = np.random.default_rng(1000 + shard)
        self.long = shard % 2 == 1

    def __iter__(self):
        while True:
            stride = self.rng.integers(1, 3) if self.long else self.rng.integers(3, 6)
            start = self.rng.integers(1, C.vocab)
            doc = 1 + (start + stride * np.arange(C.seq)) % (C.vocab - 1)
            yield doc, (0.5 if self.long else 0.06)


def corrupt(rng, doc, rate):
    hide = rng.random(C.seq) < rate
    hide[rng.integers(C.seq)] = True
    return np.where(hide, C.mask, doc), np.where(hide, doc, -100)


def assemble(source):
    it = iter(source)
    while True:
        pairs = [corrupt(source.rng, *next(it)) for _ in range(C.docs)]
        yield tuple(torch.from_numpy(np.stack(z)).long() for z in zip(*pairs))


class Infill(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(C.vocab, C.dim)
        self.pos = nn.Parameter(0.02 * torch.randn(C.seq, C.dim))
        layer = nn.TransformerEncoderLayer(C.dim, C.heads, 64, dropout=0.0, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 1)
        self.out = nn.Linear(C.dim, C.vocab)

    def forward(self, x):
        return self.out(self.enc(self.tok(x) + self.pos))


class Objective:
    def __init__(self, reduce):
        self.reduce = reduce

    def __call__(self, logits, labels):
        nll = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum")
        kept = (labels != -100).sum()
        return self.reduce(nll, kept), torch.stack([nll.detach(), kept.float()])


def per_symbol(nll, kept, world):
    total = kept.clone()
    dist.all_reduce(total)
    return nll * world / total


def optimise(model, objective, data, rank):
    opt = torch.optim.AdamW(model.parameters(), lr=C.lr)
    window = torch.zeros(2)
    for step, (x, y) in zip(range(1, C.steps + 1), data):
        loss, raw = objective(model(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        window += raw
        if step % C.log == 0:
            dist.all_reduce(window)
            if rank == 0:
                print(f"step {step:3d} nats/symbol {(window[0] / window[1]).item():.4f}", flush=True)
            window.zero_()


if __name__ == "__main__":
    torch.manual_seed(3)
    dist.init_process_group(backend=os.environ.get("BACKEND", "gloo"))
    rank, world = dist.get_rank(), dist.get_world_size()
    objective = Objective(partial(per_symbol, world=world))
    optimise(DistributedDataParallel(Infill()), objective, assemble(DocSource(rank)), rank)
    dist.barrier()
    dist.destroy_process_group()
