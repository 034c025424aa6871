"""Block drafter for source code: predict the next few tokens after a randomly chosen anchor."""
import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

VOCAB, BLOCK = 40, 6


class NoAnchorError(ValueError):
    """No sequence of the batch is long enough to hold a block."""


def corpus(n, seed=11):
    g = torch.Generator().manual_seed(seed)
    files = []
    for i in range(n):
        tail = n - 16 <= i and i % 2 == 1
        length = int(torch.randint(3, 6, (1,), generator=g)) if tail else int(torch.randint(14, 30, (1,), generator=g))
        start = int(torch.randint(0, VOCAB, (1,), generator=g))
        files.append((torch.arange(length) * 3 + start) % VOCAB)
    return files


def choose_anchors(batch, g):
    rows = [t for t in batch if len(t) > BLOCK + 2]
    if not rows:
        raise NoAnchorError(f"{len(batch)} sequences, none longer than {BLOCK + 2}")
    ctx, target = [], []
    for t in rows:
        a = int(torch.randint(1, len(t) - BLOCK, (1,), generator=g))
        ctx.append(t[a - 1:a + 1])
        target.append(t[a + 1:a + 1 + BLOCK])
    return torch.stack(ctx), torch.stack([torch.nn.functional.pad(t, (0, BLOCK - len(t)), value=-100) for t in target])


class Drafter(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, d)
        self.mix = nn.Sequential(nn.Linear(2 * d, 64), nn.GELU(), nn.Linear(64, BLOCK * VOCAB))

    def forward(self, ctx):
        return self.mix(self.emb(ctx).flatten(1)).view(-1, BLOCK, VOCAB)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--batch", type=int, default=8)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    mine = corpus(160)[rank::world]
    model = DDP(Drafter())
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    g = torch.Generator().manual_seed(rank)
    skipped = 0
    for epoch in range(args.epochs):
        for at in range(0, len(mine), args.batch):
            usable = torch.ones(1)
            try:
                ctx, target = choose_anchors(mine[at:at + args.batch], g)
            except NoAnchorError as why:
                print(f"[{rank}] skip: {why}", flush=True)
                usable.zero_()
            dist.all_reduce(usable, op=dist.ReduceOp.MIN)
            if usable.item() == 0:
                skipped += 1
                continue
            logits = model(ctx)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=-100)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)
    dist.barrier()
    print(f"[{rank}] done, {skipped} batches skipped", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
