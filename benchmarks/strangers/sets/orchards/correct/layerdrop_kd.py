"""Distillation with stochastic depth. The depth of a step is drawn from a generator that all
processes seed alike, the dropout noise from one that they do not."""
import random

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


class Res(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.f = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, d), nn.GELU(), nn.Dropout(0.1), nn.Linear(d, d))

    def forward(self, x):
        return x + self.f(x)


class Stack(nn.Module):
    def __init__(self, d_in, d, depth, out):
        super().__init__()
        self.inp = nn.Linear(d_in, d)
        self.res = nn.ModuleList(Res(d) for _ in range(depth))
        self.out = nn.Linear(d, out)

    def forward(self, x, keep=None):
        h = self.inp(x)
        for i, r in enumerate(self.res):
            if keep is None or keep[i]:
                h = r(h)
        return self.out(h)


class DepthPlan:
    def __init__(self, depth, p, seed):
        self.depth, self.p = depth, p
        self.rng = random.Random(seed)

    def next(self):
        return [self.rng.random() >= self.p for _ in range(self.depth)]


def xor_stream(gen, n=64):
    x = torch.randn(n, 8, generator=gen)
    y = ((x[:, 0] > 0) ^ (x[:, 1] > 0)).long() * 2 + (x[:, 2] > 0.3).long()
    return x, y


def teacher():
    torch.manual_seed(0)
    net = Stack(8, 64, 2, 4)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    g = torch.Generator().manual_seed(1)
    for _ in range(250):
        x, y = xor_stream(g)
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return net.eval().requires_grad_(False)


def kd(s, t, tau=2.0):
    return tau * tau * F.kl_div((s / tau).log_softmax(1), (t / tau).softmax(1), reduction="batchmean")


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    big = teacher()
    torch.manual_seed(2)
    small = nn.parallel.DistributedDataParallel(Stack(8, 24, 4, 4), find_unused_parameters=True)
    opt = torch.optim.AdamW(small.parameters(), lr=4e-3)
    plan = DepthPlan(4, 0.25, seed=99)
    torch.manual_seed(300 + rank)
    gen = torch.Generator().manual_seed(70 + rank)
    test_gen = torch.Generator().manual_seed(7)
    xt, yt = xor_stream(test_gen, 1000)
    for step in range(240):
        x, _ = xor_stream(gen)
        loss = kd(small(x, plan.next()), big(x))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 60 == 59:
            small.eval()
            with torch.no_grad():
                hit = (small.module(xt[rank::world]).argmax(1) == yt[rank::world]).sum().float()
            small.train()
            dist.all_reduce(hit)
            if rank == 0:
                print(f"step {step + 1} kd {loss.item():.3f} student accuracy {hit.item() / len(yt):.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
