"""Masked-token model with accumulation: windows of unequal length, token counts agreed on, one all-reduce a step."""
import argparse
from contextlib import nullcontext

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


def windows(loader, size):
    """Lists of micro-batches; the last list of an epoch may be shorter."""
    held = []
    for batch in loader:
        held.append(batch)
        if len(held) == size:
            yield held
            held = []
    if held:
        yield held


def micro_batches(rank, epoch, count=22):
    g = torch.Generator().manual_seed(1000 * epoch + rank)
    rule = torch.randperm(40, generator=torch.Generator().manual_seed(0))
    for _ in range(count):
        first = torch.randint(0, 40, (8, 1), generator=g)
        rows = [first]
        for _ in range(11):
            rows.append(rule[rows[-1]])
        tokens = torch.cat(rows, 1)
        mask = torch.rand(tokens.shape, generator=g) < (0.05 if torch.rand((), generator=g) < 0.4 else 0.3)
        yield tokens.masked_fill(mask, 40), tokens, mask


class Masked(nn.Module):
    def __init__(self, vocab=41, dim=32):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.mix = nn.Conv1d(dim, 2 * dim, 3, padding=1)
        self.out = nn.Linear(2 * dim, vocab)

    def forward(self, x):
        return self.out(F.gelu(self.mix(self.emb(x).transpose(1, 2))).transpose(1, 2))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--window", type=int, default=4)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(Masked())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for epoch in range(args.epochs):
        seen = torch.zeros(2)
        for window in windows(micro_batches(rank, epoch), args.window):
            tokens = torch.tensor(float(sum(mask.sum() for _, _, mask in window)))
            dist.all_reduce(tokens)
            opt.zero_grad()
            for k, (x, y, mask) in enumerate(window):
                with model.no_sync() if k + 1 < len(window) else nullcontext():
                    logits = model(x)
                    total = F.cross_entropy(logits[mask], y[mask], reduction="sum")
                    (total * world / tokens.clamp(min=1)).backward()
                seen += torch.tensor([total.item(), float(mask.sum())])
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
        dist.all_reduce(seen)
        if rank == 0:
            print(f"epoch {epoch} loss a token {seen[0] / seen[1]:.4f}", flush=True)
    dist.barrier()
    del model, opt
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
