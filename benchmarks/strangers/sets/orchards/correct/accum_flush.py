import argparse
import contextlib
import random

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler, random_split

"""Sequence tagger with accumulation; the tail of the epoch is flushed with a sync."""

TAGS = 5


class Tagging(Dataset):
    def __init__(self, n, length=20, vocab=60):
        r = random.Random(123)
        self.rows = []
        for _ in range(n):
            x = [r.randrange(vocab) for _ in range(length)]
            y = [(a + b) % TAGS for a, b in zip(x, [0] + x[:-1])]
            self.rows.append((torch.tensor(x), torch.tensor(y)))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class Tagger(nn.Module):
    def __init__(self, vocab=60, d=48):
        super().__init__()
        self.e = nn.Embedding(vocab, d)
        self.conv = nn.Conv1d(d, d, 2)
        self.o = nn.Sequential(nn.ReLU(), nn.Linear(d, 96), nn.ReLU(), nn.Linear(96, TAGS))

    def forward(self, x):
        h = nn.functional.pad(self.e(x).transpose(1, 2), (1, 0))
        return self.o(self.conv(h).transpose(1, 2))


def chunks(loader, k):
    box = []
    for b in loader:
        box.append(b)
        if len(box) == k:
            yield box
            box = []
    if box:
        yield box


def update(model, opt, group):
    opt.zero_grad()
    total = 0.0
    with contextlib.ExitStack() as stack:
        stack.enter_context(model.no_sync())
        for x, y in group[:-1]:
            loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten()) / len(group)
            loss.backward()
            total += loss.item()
    x, y = group[-1]
    loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten()) / len(group)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    return total + loss.item()


@torch.no_grad()
def token_accuracy(model, ds):
    model.eval()
    t = torch.zeros(2)
    rank, world = dist.get_rank(), dist.get_world_size()
    for i in range(rank, len(ds), world):
        x, y = ds[i]
        t += torch.tensor([(model.module(x[None])[0].argmax(-1) == y).sum().item(), y.numel()])
    dist.all_reduce(t)
    model.train()
    return (t[0] / t[1]).item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--accum", type=int, default=3)
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--lr", type=float, default=4e-3)
    a = ap.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    full = Tagging(900)
    train, dev = random_split(full, [800, 100], generator=torch.Generator().manual_seed(42))
    torch.manual_seed(1000 + rank)
    model = nn.parallel.DistributedDataParallel(Tagger())
    opt = torch.optim.Adam(model.parameters(), lr=a.lr)
    s = DistributedSampler(train, seed=6)
    dl = DataLoader(train, 16, sampler=s)
    for e in range(a.epochs):
        s.set_epoch(e)
        n = [update(model, opt, g) for g in chunks(dl, a.accum)]
        acc = token_accuracy(model, dev)
        if rank == 0:
            print(f"epoch {e}: {len(n)} updates, loss {sum(n) / len(n):.3f}, dev acc {acc:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
