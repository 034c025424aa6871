"""Looped network that finds connected components of small grids (python looped_solver.py).

One block is applied many times; activations are recomputed to keep memory flat.
"""
import argparse
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint


class GridTask:
    """Random mazes; a cell is positive if it can be reached from the upper left corner."""

    def __init__(self, size, seed):
        self.size, self.gen = size, torch.Generator().manual_seed(seed)

    def batch(self, n):
        free = (torch.rand(n, 1, self.size, self.size, generator=self.gen) > 0.3).float()
        free[:, :, 0, 0] = 1
        start = torch.zeros_like(free)
        start[:, :, 0, 0] = 1
        reach = start
        for _ in range(2 * self.size):
            grown = torch.maximum(
                nn.functional.max_pool2d(reach, (3, 1), 1, (1, 0)), nn.functional.max_pool2d(reach, (1, 3), 1, (0, 1)))
            reach = grown * free
        return torch.cat([free, start], 1), reach


class Step(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.GroupNorm(4, width)
        self.gate = nn.Conv2d(width, width, 1)

    def forward(self, h):
        return h + torch.tanh(self.mix(self.norm(h))) * torch.sigmoid(self.gate(h))


class LoopedNet(nn.Module):
    def __init__(self, width=16, loops=6, low_memory=True):
        super().__init__()
        self.inp = nn.Conv2d(2, width, 3, padding=1)
        self.step = Step(width)
        self.out = nn.Conv2d(width, 1, 1)
        self.loops, self.low_memory = loops, low_memory

    def advance(self, h):
        if self.low_memory and self.training:
            return checkpoint(self.step, h, use_reentrant=False)
        return self.step(h)

    def forward(self, x):
        h = self.inp(x)
        for _ in range(self.loops):
            h = self.advance(h)
        return self.out(h)


class Experiment:
    def __init__(self, rank, args):
        self.rank, self.args = rank, args
        torch.manual_seed(0)
        self.net = DistributedDataParallel(LoopedNet(loops=args.loops))
        self.opt = torch.optim.Adam(self.net.parameters(), lr=args.lr)
        self.task = GridTask(args.size, seed=rank)

    def train(self):
        for it in range(1, self.args.iters + 1):
            x, y = self.task.batch(self.args.batch)
            loss = nn.functional.binary_cross_entropy_with_logits(self.net(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            if it % 10 == 0:
                self.show(it, loss.detach())

    def show(self, it, loss):
        dist.all_reduce(loss)
        if self.rank == 0:
            print(f"iter {it} loss {loss.item() / dist.get_world_size():.4f}", flush=True)


def job(rank, args, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=args.procs)
    Experiment(rank, args).train()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    for name, default in dict(procs=2, iters=30, batch=16, loops=6, size=8).items():
        ap.add_argument(f"--{name}", type=int, default=default)
    ap.add_argument("--lr", type=float, default=3e-3)
    args = ap.parse_args()
    with tempfile.TemporaryDirectory() as d:
        mp.spawn(job, nprocs=args.procs, args=(args, os.path.join(d, "store")))
