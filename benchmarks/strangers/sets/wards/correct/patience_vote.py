"""Early stopping where only the main process keeps the book.   torchrun --nproc_per_node 2 patience_vote.py"""
import functools

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main_only(fn):
    @functools.wraps(fn)
    def inner(*a, **k):
        if dist.get_rank() == 0:
            return fn(*a, **k)
    return inner


class Book:
    def __init__(self, patience):
        self.best, self.bad, self.patience = float("inf"), 0, patience

    @main_only
    def enough(self, loss):
        self.bad = 0 if loss < self.best - 0.02 else self.bad + 1
        self.best = min(self.best, loss)
        return self.bad >= self.patience

    def verdict(self, loss):
        box = [self.enough(loss)]
        dist.broadcast_object_list(box, src=0)
        return box[0]


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    g = torch.Generator().manual_seed(rank)
    x = torch.randn(256, 6, generator=g)
    y = x.sum(1, keepdim=True).sin() + 0.1 * torch.randn(256, 1, generator=g)
    torch.manual_seed(0)
    net = DistributedDataParallel(nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1)))
    opt = torch.optim.Adam(net.parameters(), lr=2e-2)
    book = Book(patience=3)
    for epoch in range(60):
        for xb, yb in zip(x.split(32), y.split(32)):
            loss = nn.functional.mse_loss(net(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():
            own = nn.functional.mse_loss(net.module(x), y).item()
        if book.verdict(own):
            break
    dist.barrier()
    print(f"[{rank}] ended after epoch {epoch}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
