#!/usr/bin/env python
"""Click-through model. Every worker reads its own slice of the log file."""
import argparse
import logging
import math
import os
import random

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

log = logging.getLogger("ctr")


def read_log(n_rows, n_fields, vocab, seed=7):
    rng = random.Random(seed)
    rows = []
    for _ in range(n_rows):
        feats = [rng.randrange(vocab) for _ in range(n_fields)]
        rows.append((feats, 1.0 if sum(feats) % 3 == 0 else 0.0))
    return rows


class ShardReader:
    def __init__(self, rows, rank, world_size, batch_size):
        per_rank = len(rows) // world_size
        self.rows = rows[rank::world_size][:per_rank]
        self.batch_size = batch_size

    def __len__(self):
        return math.ceil(len(self.rows) / self.batch_size)

    def __iter__(self):
        for i in range(len(self)):
            chunk = self.rows[i * self.batch_size:(i + 1) * self.batch_size]
            x = torch.tensor([c[0] for c in chunk])
            y = torch.tensor([c[1] for c in chunk])
            yield x, y


class FM(nn.Module):
    def __init__(self, vocab, dim=8):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1))
        self.lin = nn.Embedding(vocab, 1)
        self.emb = nn.Embedding(vocab, dim)

    def forward(self, x):
        e = self.emb(x)
        inter = 0.5 * (e.sum(1).pow(2) - e.pow(2).sum(1)).sum(1)
        return self.bias + self.lin(x).sum(dim=(1, 2)) + inter


def run(args):
    dist.init_process_group(backend="gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO if rank == 0 else logging.WARNING)
    rows = read_log(args.rows, args.fields, args.vocab)
    reader = ShardReader(rows, rank, world, args.batch_size)
    torch.manual_seed(1)
    model = DistributedDataParallel(FM(args.vocab))
    opt = torch.optim.Adagrad(model.parameters(), lr=0.05)
    bce = nn.BCEWithLogitsLoss()

    for epoch in range(args.epochs):
        seen, total = 0, 0.0
        for x, y in reader:
            opt.zero_grad()
            loss = bce(model(x), y)
            loss.backward()
            opt.step()
            seen += len(y)
            total += loss.item() * len(y)
        log.info("epoch %d done, %d rows, logloss %.4f", epoch, seen, total / seen)
        dist.barrier()
        if rank == 0:
            torch.save(model.module.state_dict(), args.out)
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--rows", type=int, default=641)
    p.add_argument("--fields", type=int, default=5)
    p.add_argument("--vocab", type=int, default=50)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--out", default="fm.pt")
    run(p.parse_args())
