import argparse
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from audio import call_bank
from net import call_net
from store import BestStore


def accuracy(module, x, y, chunk=32):
    module.eval()
    with torch.no_grad():
        hits = sum((module(a).argmax(1) == b).sum().item() for a, b in zip(x.split(chunk), y.split(chunk)))
    module.train()
    return hits / len(y)


class Session:
    def __init__(self, opts):
        self.opts = opts
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        x, y = call_bank(opts.train, seed=1)
        self.x, self.y = x[self.rank :: self.world], y[self.rank :: self.world]
        self.model = DDP(call_net(5))
        self.optim = torch.optim.Adam(self.model.parameters(), lr=opts.lr)
        self.store = BestStore(opts.folder, self.rank)
        if self.rank == 0:
            self.val = call_bank(opts.val, seed=2)

    def epoch(self, number):
        g = torch.Generator().manual_seed(number)
        for idx in torch.randperm(len(self.y), generator=g).split(self.opts.batch):
            loss = nn.functional.cross_entropy(self.model(self.x[idx]), self.y[idx])
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()
        if self.rank == 0:
            acc = accuracy(self.model.module, *self.val)
            self.store.offer(self.model.module, acc)
            print(f"epoch {number} val acc {acc:.3f}", flush=True)

    def test(self):
        self.store.restore(self.model.module)
        x, y = call_bank(self.opts.test, seed=3)
        hits = torch.tensor([accuracy(self.model.module, x[self.rank :: self.world], y[self.rank :: self.world])])
        dist.all_reduce(hits)
        if self.rank == 0:
            print(f"test acc {hits.item() / self.world:.3f}", flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--train", type=int, default=200)
    ap.add_argument("--val", type=int, default=2000)
    ap.add_argument("--test", type=int, default=200)
    ap.add_argument("--batch", type=int, default=25)
    ap.add_argument("--epochs", type=int, default=1)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--folder", default="bird_runs")
    opts = ap.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(9)
    session = Session(opts)
    for n in range(opts.epochs):
        session.epoch(n)
    session.test()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
