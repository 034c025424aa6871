"""Metabolic pathway regression with two experts, one per process.

The trunk and the router are replicated (DDP); expert k lives on rank k and
gets its samples by all-to-all.   torchrun --nproc-per-node 2 pathway_experts.py
"""
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

DIM, STEPS, BATCH = 32, 60, 48


class Exchange(torch.autograd.Function):
    """Rows to their ranks; the gradient takes the way back."""

    @staticmethod
    def forward(ctx, rows, give, take):
        ctx.give, ctx.take = give, take
        out = rows.new_empty(sum(take), rows.shape[1])
        dist.all_to_all_single(out, rows.contiguous(), take, give)
        return out

    @staticmethod
    def backward(ctx, g):
        back = g.new_empty(sum(ctx.give), g.shape[1])
        dist.all_to_all_single(back, g.contiguous(), ctx.give, ctx.take)
        return back, None, None


class Trunk(nn.Module):
    def __init__(self, world):
        super().__init__()
        self.inp = nn.Sequential(nn.Linear(10, DIM), nn.GELU())
        self.route = nn.Linear(DIM, world)
        self.out = nn.Linear(DIM, 1)

    def forward(self, x):
        h = self.inp(x)
        return h, self.route(h).softmax(-1), self.out(h)


class Dispatcher:
    def __init__(self, world):
        self.world = world

    def plan(self, expert):
        give = torch.bincount(expert, minlength=self.world)
        return give.tolist(), give.flip(0).tolist()

    def __call__(self, h, expert, fn):
        order = expert.argsort(stable=True)
        give, take = self.plan(expert)
        here = Exchange.apply(h[order], give, take)
        done = Exchange.apply(fn(here), take, give)
        back = torch.empty_like(order)
        back[order] = torch.arange(len(order))
        return done[back]


def batch(rank, step):
    g = torch.Generator().manual_seed(step * 2 + rank)
    x = torch.randn(BATCH, 10, generator=g)
    y = torch.where(x[:, :1] > 0, x[:, 1:2].sin() * 2, x[:, 2:3] * x[:, 3:4])
    return x, y


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=25))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    trunk = DDP(Trunk(world))
    torch.manual_seed(50 + rank)
    expert = nn.Sequential(nn.Linear(DIM, 64), nn.GELU(), nn.Linear(64, 1))
    opt = torch.optim.Adam([{"params": trunk.parameters()}, {"params": expert.parameters()}], lr=5e-3)
    send = Dispatcher(world)
    mean = 0.0
    for step in range(STEPS):
        x, y = batch(rank, step)
        h, gate, base = trunk(x)
        top, which = gate.max(-1)
        pred = base + top.unsqueeze(1) * send(h, which, expert)
        balance = world * (gate.mean(0) * torch.bincount(which, minlength=world) / BATCH).sum()
        loss = (pred - y).pow(2).mean() + 0.01 * balance
        opt.zero_grad()
        loss.backward()
        for p in expert.parameters():
            p.grad /= world
        opt.step()
        mean += loss.item()
        if step % 20 == 19:
            if rank == 0:
                print(f"step {step + 1} loss {mean / 20:.4f}", flush=True)
            mean = 0.0
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
