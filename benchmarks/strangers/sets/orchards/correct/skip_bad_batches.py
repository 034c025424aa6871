"""Noisy sensor regression. A batch with a non-finite loss anywhere is skipped everywhere."""
import argparse
import logging
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

log = logging.getLogger(__name__)


class Sensors(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randn(n, 8, 30, generator=g)
        self.y = self.x.mean(-1).pow(2).sum(1) * 10
        broken = torch.rand(n, generator=g) < 0.01
        self.x[broken, 3, 5] = float("nan")

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Conv1d(8, 24, 5), nn.ReLU(), nn.Conv1d(24, 24, 5), nn.AdaptiveAvgPool1d(1), nn.Flatten())
        self.h = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.h(self.f(x)).squeeze(1)


class SkipCounter:
    def __init__(self, limit):
        self.limit, self.total, self.streak = limit, 0, 0

    def veto(self, loss):
        bad = (~torch.isfinite(loss.detach())).int()
        dist.all_reduce(bad, op=dist.ReduceOp.MAX)
        if bad.item():
            self.total += 1
            self.streak += 1
            if self.streak >= self.limit:
                raise RuntimeError("too many bad batches in a row")
            return True
        self.streak = 0
        return False


def main(argv):
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--batch", type=int, default=16)
    ap.add_argument("--lr", type=float, default=3e-3)
    a = ap.parse_args(argv)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO if rank == 0 else logging.ERROR, format=f"[{rank}] %(message)s")
    torch.manual_seed(0)
    ds = Sensors(1600, 4)
    sampler = DistributedSampler(ds)
    dl = DataLoader(ds, a.batch, sampler=sampler)
    model = DDP(Conv())
    opt = torch.optim.AdamW(model.parameters(), lr=a.lr)
    skips = SkipCounter(limit=20)
    for e in range(a.epochs):
        sampler.set_epoch(e)
        tot = torch.zeros(2)
        for x, y in dl:
            loss = nn.functional.mse_loss(model(x), y)
            if skips.veto(loss):
                continue
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += torch.tensor([loss.item(), 1.0])
        dist.all_reduce(tot)
        log.info("epoch %d mse %.4f, skipped so far %d", e, tot[0] / tot[1], skips.total)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1:])
