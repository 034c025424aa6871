"""Surrogate of 1-D heat diffusion, trained with two-level gradient averaging.

Processes of one node average first, node leaders then average among each other
and hand the result back to their node.
"""
import argparse
import time

import torch
import torch.distributed as dist
from torch import nn


def heat_pairs(count, points, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.linspace(0, 1, points)
    coef = torch.randn(count, 6, generator=g)
    k = torch.arange(1, 7).float() * torch.pi
    basis = torch.sin(x[:, None] * k)
    start = coef @ basis.T
    later = (coef * torch.exp(-0.01 * k**2)) @ basis.T
    return start, later


class Surrogate(nn.Module):
    def __init__(self, points, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(points, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, points)
        )

    def forward(self, u):
        return u + self.net(u)


class Hierarchy:
    """Node groups plus one group of the node leaders."""

    def __init__(self, per_node):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.per_node = per_node
        self.node = self.rank // per_node
        self.leader = self.node * per_node
        leaders = list(range(0, self.world, per_node))
        self.leaders = None
        if self.rank in leaders:
            self.leaders = dist.new_group(leaders)
        nodes = [list(range(s, s + per_node)) for s in range(0, self.world, per_node)]
        groups = [dist.new_group(members) for members in nodes]
        self.local = groups[self.node]

    def average(self, tensor):
        dist.reduce(tensor, self.leader, group=self.local)
        if self.rank == self.leader:
            dist.all_reduce(tensor, group=self.leaders)
            tensor /= self.world
        dist.broadcast(tensor, self.leader, group=self.local)


def flat_grads(model):
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def write_grads(model, flat):
    at = 0
    for p in model.parameters():
        n = p.numel()
        p.grad.copy_(flat[at : at + n].view_as(p))
        at += n


def train(args):
    tree = Hierarchy(args.per_node)
    torch.manual_seed(0)
    model = Surrogate(args.points)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    u0, u1 = heat_pairs(args.samples, args.points, seed=100 + tree.rank)
    began = time.time()
    for step in range(args.steps):
        idx = torch.randint(0, len(u0), (args.batch,))
        loss = (model(u0[idx]) - u1[idx]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        flat = flat_grads(model)
        tree.average(flat)
        write_grads(model, flat)
        opt.step()
        if tree.rank == 0 and step % 20 == 0:
            print(f"step {step} loss {loss.item():.5f} {time.time() - began:.1f}s", flush=True)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--per-node", type=int, default=2)
    ap.add_argument("--points", type=int, default=48)
    ap.add_argument("--samples", type=int, default=256)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--steps", type=int, default=60)
    arguments = ap.parse_args()
    dist.init_process_group("gloo")
    train(arguments)
    dist.barrier()
    dist.destroy_process_group()
