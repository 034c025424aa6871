"""GPT-ish block on synthetic tokens, with gradient accumulation."""
import argparse
import os
import time
from contextlib import nullcontext

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.mix = nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        x = x + self.mix(self.n1(x)).cumsum(1) / x.size(1)
        return x + self.mlp(self.n2(x))


class TinyLM(nn.Module):
    def __init__(self, vocab=2000, d=384, layers=4):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        self.blocks = nn.Sequential(*[Block(d) for _ in range(layers)])
        self.head = nn.Linear(d, vocab)

    def forward(self, idx, targets):
        logits = self.head(self.blocks(self.tok(idx)))
        return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


class TokenStream:
    def __init__(self, rank, batch, block, vocab=2000):
        self.g = torch.Generator().manual_seed(1000 + rank)
        self.batch, self.block, self.vocab = batch, block, vocab

    def next_batch(self):
        start = torch.randint(0, self.vocab, (self.batch, 1), generator=self.g)
        seq = (start + 7 * torch.arange(self.block + 1)) % self.vocab
        return seq[:, :-1], seq[:, 1:]


def train_step(model, opt, stream, accum):
    opt.zero_grad(set_to_none=True)
    total = 0.0
    for micro in range(accum):
        x, y = stream.next_batch()
        sync_now = micro == accum - 1
        with nullcontext() if sync_now else model.no_sync():
            loss = model(x, y) / accum
            loss.backward()
        total += loss.item()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    return total


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--steps", type=int, default=8)
    ap.add_argument("--accum", type=int, default=4)
    ap.add_argument("--batch", type=int, default=1)
    ap.add_argument("--block", type=int, default=8)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(1337)
    model = DDP(TinyLM())
    opt = torch.optim.AdamW(model.parameters(), lr=6e-4)
    stream = TokenStream(rank, args.batch, args.block)
    for epoch in range(args.epochs):
        for step in range(args.steps):
            t0 = time.time()
            loss = train_step(model, opt, stream, args.accum)
            if rank == 0:
                print(f"epoch {epoch} step {step} loss {loss:.4f} dt {1000 * (time.time() - t0):.0f}ms", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
