"""Driving toy: steering and speed from one trunk, conflicting gradients are projected.

    torchrun --nproc-per-node 2 drive_two_goals.py --mode project
"""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class TwoGoals(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(12, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.goal = nn.ModuleDict({"steer": nn.Linear(width, 1), "speed": nn.Linear(width, 1)})

    def forward(self, x, which):
        h = self.trunk(x)
        return self.goal[which](h)


def scenes(rank, step, n=32):
    g = torch.Generator().manual_seed(7919 * rank + step)
    x = torch.randn(n, 12, generator=g)
    lane, traffic = x[:, :1], x[:, 1:2]
    return x, {"steer": torch.sin(2 * lane) - 0.3 * traffic, "speed": torch.cos(lane) - traffic.relu()}


def per_goal_grads(net, x, targets):
    """One backward per goal, returns {goal: [grad per parameter]}."""
    params = [p for p in net.parameters()]
    kept = {}
    for goal, y in targets.items():
        net.zero_grad(set_to_none=True)
        loss = (net(x, goal) - y).pow(2).mean()
        loss.backward()
        kept[goal] = ([None if p.grad is None else p.grad.clone() for p in params], loss.item())
    return kept


def dot(a, b):
    return sum((u * v).sum() for u, v in zip(a, b) if u is not None and v is not None)


def project(a, b):
    d = dot(a, b)
    if d >= 0:
        return list(a)
    scale = d / (dot(b, b) + 1e-12)
    return [u if u is None or v is None else u - scale * v for u, v in zip(a, b)]


def combine(grads, mode):
    s, v = grads
    if mode == "project":
        s, v = project(s, v), project(v, s)
    out = []
    for a, b in zip(s, v):
        parts = [t for t in (a, b) if t is not None]
        out.append(sum(parts) if parts else None)
    return out


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--mode", choices=["project", "sum"], default="project")
    ap.add_argument("--steps", type=int, default=120)
    ap.add_argument("--lr", type=float, default=0.05)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    net = DDP(TwoGoals(), find_unused_parameters=True, gradient_as_bucket_view=True)
    opt = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.8)
    for step in range(args.steps):
        x, targets = scenes(rank, step)
        kept = per_goal_grads(net, x, targets)
        for p, g in zip(net.parameters(), combine([k[0] for k in kept.values()], args.mode)):
            p.grad = g
        opt.step()
        if rank == 0 and step % 30 == 29:
            print(f"step {step + 1} " + " ".join(f"{n} {k[1]:.4f}" for n, k in kept.items()), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
