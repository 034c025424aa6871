"""GRU language model on synthetic couplets with gradient accumulation."""
import argparse
import contextlib
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


def couplets(n, seed, vocab=30, length=16):
    """The second half of a line repeats the first one backwards."""
    g = torch.Generator().manual_seed(seed)
    half = torch.randint(1, vocab, (n, length // 2), generator=g)
    return torch.cat([half, half.flip(1)], dim=1)


class LM(nn.Module):
    def __init__(self, vocab=30, dim=48, hidden=192):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, hidden, batch_first=True)
        self.proj = nn.Linear(hidden, vocab)

    def forward(self, tokens):
        h, _ = self.rnn(self.emb(tokens[:, :-1]))
        return F.cross_entropy(self.proj(h).flatten(0, 1), tokens[:, 1:].flatten())


class Accumulator:
    """Counts micro-batches and says when the optimizer is due."""

    def __init__(self, model, every):
        self.model, self.every, self.count = model, every, 0

    @property
    def due(self):
        return self.count % self.every == 0

    def micro(self):
        """Context of one micro-batch; gradients travel only with the last."""
        self.count += 1
        return contextlib.nullcontext() if self.due else self.model.no_sync()


def get_lr(step, args):
    if step < args.warmup:
        return args.lr * (step + 1) / args.warmup
    return args.lr * max(0.05, 1 - (step - args.warmup) / (args.updates - args.warmup))


def train(model, data, args, rank):
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    acc = Accumulator(model, args.accum)
    gen = torch.Generator().manual_seed(args.seed + rank)
    update, running, t0 = 0, 0.0, time.time()
    while update < args.updates:
        idx = torch.randint(0, len(data), (args.micro_batch,), generator=gen)
        with acc.micro():
            loss = model(data[idx]) / args.accum
            loss.backward()
        running += loss.item()
        if not acc.due:
            continue
        nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        for group in opt.param_groups:
            group["lr"] = get_lr(update, args)
        opt.step()
        opt.zero_grad(set_to_none=True)
        update += 1
        if rank == 0 and update % 5 == 0:
            print(f"update {update} loss {running / 5:.3f} {time.time() - t0:.2f}s", flush=True)
        if update % 5 == 0:
            running = 0.0


@torch.no_grad()
def perplexity(model, data, rank, world):
    part = data[rank::world]
    t = torch.tensor([model.module(part).item() * len(part), float(len(part))])
    dist.all_reduce(t)
    return (t[0] / t[1]).exp().item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--updates", type=int, default=15)
    p.add_argument("--accum", type=int, default=6)
    p.add_argument("--micro-batch", type=int, default=8)
    p.add_argument("--lr", type=float, default=4e-3)
    p.add_argument("--warmup", type=int, default=3)
    p.add_argument("--clip", type=float, default=1.0)
    p.add_argument("--seed", type=int, default=23)
    args = p.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(args.seed)
    model = DistributedDataParallel(LM())
    data = couplets(600, args.seed)
    train(model, data[rank::world], args, rank)
    ppl = perplexity(model, couplets(100, args.seed + 1), rank, world)
    if rank == 0:
        print(f"test perplexity {ppl:.2f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
