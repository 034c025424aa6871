"""Shared descriptor, one fitting net per data set (alloy, water, oxide). Task of a step is drawn by its weight."""
import argparse

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

TASKS = {"alloy": 0.5, "water": 0.3, "oxide": 0.2}


class Descriptor(nn.Module):
    def __init__(self, n_in=12, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_in, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())

    def forward(self, coord):
        return self.net(coord)


class FittingNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, d):
        return self.net(d).squeeze(-1)


class System:
    """Frames of one data set; every rank has its own."""

    def __init__(self, name, seed):
        self.phase = {"alloy": 0.0, "water": 2.0, "oxide": 4.0}[name]
        self.gen = torch.Generator().manual_seed(seed)

    def frames(self, n):
        x = torch.randn(n, 12, generator=self.gen)
        return x, torch.sin(x.sum(1) * 0.5 + self.phase)


def average_gradients(params):
    grads = [p.grad for p in params if p.grad is not None]
    flat = _flatten_dense_tensors(grads)
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    for g, mean in zip(grads, _unflatten_dense_tensors(flat, grads)):
        g.copy_(mean)


class MultiTaskTrainer:
    def __init__(self, opts):
        self.opts = opts
        self.rank = dist.get_rank()
        torch.manual_seed(opts.seed)
        self.rng = np.random.default_rng(opts.seed)
        self.descriptor = Descriptor()
        self.heads = {t: FittingNet() for t in TASKS}
        self.systems = {t: System(t, 1000 * self.rank + i) for i, t in enumerate(TASKS)}
        self.params = list(self.descriptor.parameters()) + [p for h in self.heads.values() for p in h.parameters()]
        self.optim = torch.optim.Adam(self.params, lr=opts.lr)
        self.sched = torch.optim.lr_scheduler.ExponentialLR(self.optim, 0.998)

    def pick(self):
        names = list(TASKS)
        return names[self.rng.choice(len(names), p=list(TASKS.values()))]

    def step(self):
        task = self.pick()
        x, energy = self.systems[task].frames(self.opts.batch)
        loss = nn.functional.mse_loss(self.heads[task](self.descriptor(x)), energy)
        self.optim.zero_grad(set_to_none=True)
        loss.backward()
        average_gradients(self.params)
        self.optim.step()
        self.sched.step()
        return task, loss.item()

    def run(self):
        seen = {t: [] for t in TASKS}
        for i in range(1, self.opts.steps + 1):
            task, loss = self.step()
            seen[task].append(loss)
            if self.rank == 0 and i % self.opts.disp_freq == 0:
                print(i, {t: round(sum(v[-20:]) / max(1, len(v[-20:])), 4) for t, v in seen.items()}, flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=300)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--seed", type=int, default=10)
    ap.add_argument("--disp-freq", type=int, default=100)
    dist.init_process_group("gloo")
    MultiTaskTrainer(ap.parse_args()).run()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
