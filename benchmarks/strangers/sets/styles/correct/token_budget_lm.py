"""Language-model fine-tuning with a token budget per update and a loss normalised by all target tokens."""
import argparse
import contextlib
import random

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

VOCAB, IGNORE = 40, -100


def conversations(rank, seed=0):
    """Endless; the length of a micro batch differs from process to process."""
    rng = random.Random(f"{seed}-{rank}")
    while True:
        length = rng.randint(6, 24)
        start = [rng.randint(0, VOCAB - 1) for _ in range(4)]
        ids = torch.tensor([[(s + 2 * k) % VOCAB for k in range(length)] for s in start])
        labels = ids.clone()
        labels[:, :rng.randint(1, length - 2)] = IGNORE
        yield ids, labels


class TinyLM(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.lm_head = nn.Linear(dim, VOCAB, bias=False)
        self.lm_head.weight = self.embed.weight

    def forward(self, ids):
        return self.lm_head(self.rnn(self.embed(ids))[0])


class BudgetCollector:
    """Micro batches for one update. Their number is the largest anybody needs."""

    def __init__(self, stream, budget):
        self.stream, self.budget = stream, budget

    def collect(self):
        window, tokens = [], 0
        while tokens < self.budget:
            window.append(next(self.stream))
            tokens += window[-1][0].numel()
        need = torch.tensor([len(window)])
        dist.all_reduce(need, op=dist.ReduceOp.MAX)
        while len(window) < need.item():
            window.append(next(self.stream))
        targets = torch.tensor([sum(int((lab[:, 1:] != IGNORE).sum()) for _, lab in window)])
        dist.all_reduce(targets)
        return window, int(targets)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--updates", type=int, default=30)
    p.add_argument("--budget", type=int, default=180)
    p.add_argument("--lr", type=float, default=4e-3)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(TinyLM())
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    collector = BudgetCollector(conversations(rank), args.budget)
    for update in range(args.updates):
        window, targets = collector.collect()
        total = 0.0
        for k, (ids, labels) in enumerate(window):
            last = k == len(window) - 1
            with contextlib.nullcontext() if last else model.no_sync():
                logits = model(ids)
                loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(),
                                       ignore_index=IGNORE, reduction="sum")
                (loss * world / targets).backward()
            total += loss.item()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
        if update % 10 == 9:
            shown = torch.tensor([total])
            dist.reduce(shown, dst=0)
            if rank == 0:
                print(f"update {update} nll {shown.item() / targets:.4f} norm {norm:.3f} micro {len(window)}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
