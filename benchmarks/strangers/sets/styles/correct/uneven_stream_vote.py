"""Keyword spotting from an uneven stream; the loop ends for everybody when somebody runs dry."""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset


class Recordings(IterableDataset):
    """Process r has a number of recordings of its own."""

    def __init__(self, rank, seed=0):
        self.n, self.rank, self.seed, self.epoch = 70 + 23 * rank, rank, seed, 0

    def __iter__(self):
        g = torch.Generator().manual_seed(1000 * self.seed + 100 * self.epoch + self.rank)
        for _ in range(self.n):
            y = int(torch.randint(0, 4, (1,), generator=g))
            t = torch.arange(64) / 64
            x = torch.sin(6.28 * (3 + 4 * y) * t) + 0.6 * torch.randn(64, generator=g)
            if x.abs().max() < 4.0:
                yield x.unsqueeze(0), y


class Spotter(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(1, 16, 9, 2), nn.GroupNorm(4, 16), nn.ReLU(), nn.Conv1d(16, 16, 9, 2), nn.ReLU())
        self.fc = nn.Linear(16, 4)

    def forward(self, x):
        return self.fc(self.conv(x).amax(2))


def together(iterable):
    """Yields as long as all processes have something to yield."""
    it = iter(iterable)
    flag = torch.zeros(1)
    while True:
        item = next(it, None)
        flag.fill_(float(item is not None))
        dist.all_reduce(flag, op=dist.ReduceOp.MIN)
        if flag.item() == 0:
            return
        yield item


def leftovers_free_eval(net, loader):
    """Each process scores what it has; only the two sums are shared."""
    net.eval()
    hits = torch.zeros(2)
    with torch.no_grad():
        for x, y in loader:
            hits += torch.tensor([float((net(x).argmax(1) == y).sum()), float(len(y))])
    net.train()
    dist.all_reduce(hits)
    return (hits[0] / hits[1]).item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch", type=int, default=8)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    stream, held_out = Recordings(rank), Recordings(rank, seed=5)
    net = Spotter()
    model = DDP(net)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(args.epochs):
        stream.epoch = epoch
        steps = 0
        for x, y in together(DataLoader(stream, args.batch)):
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            steps += 1
        acc = leftovers_free_eval(net, DataLoader(held_out, args.batch))
        if rank == 0:
            print(f"epoch {epoch} steps {steps} loss {loss.item():.4f} acc {acc:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
