"""Learned time-stepper for the advection equation on a ring, the domain cut into one slab per rank."""
import math

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

CELLS, HALO, DT = 48, 2, 0.2


class Stepper(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(1, 12, 2 * HALO + 1), nn.Tanh(), nn.Conv1d(12, 1, 1))

    def forward(self, padded):
        return padded[..., HALO:-HALO] + DT * self.net(padded)


class RingDecomposition:
    """Who my neighbours are, and how boundary cells travel."""

    def __init__(self):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.left = (self.rank - 1) % self.world
        self.right = (self.rank + 1) % self.world
        self.size = CELLS // self.world

    def local(self, field):
        return field[..., self.rank * self.size:(self.rank + 1) * self.size].contiguous()

    def exchange(self, u):
        from_left = torch.empty_like(u[..., :HALO]).contiguous()
        from_right = torch.empty_like(u[..., :HALO]).contiguous()
        dist.send(u[..., -HALO:].contiguous(), dst=self.right)
        dist.recv(from_left, src=self.left)
        dist.send(u[..., :HALO].contiguous(), dst=self.left)
        dist.recv(from_right, src=self.right)
        return torch.cat([from_left, u, from_right], dim=-1)


def exact(phase, t):
    x = torch.arange(CELLS) / CELLS * 2 * math.pi
    return torch.sin(x - 0.5 * t + phase[:, None]) + 0.3 * torch.cos(2 * (x - 0.5 * t) + phase[:, None])


def rollout_loss(model, ring, phase, horizon):
    u = ring.local(exact(phase, 0.0))[:, None]
    loss = 0.0
    for k in range(1, horizon + 1):
        u = model(ring.exchange(u.detach()))
        target = ring.local(exact(phase, k * DT))[:, None]
        loss = loss + nn.functional.mse_loss(u, target)
    return loss / horizon


def train(iterations=30):
    ring = RingDecomposition()
    torch.manual_seed(0)
    model = DDP(Stepper())
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    shared = torch.Generator().manual_seed(42)
    for it in range(iterations):
        phase = 2 * math.pi * torch.rand(8, generator=shared)
        opt.zero_grad()
        loss = rollout_loss(model, ring, phase, horizon=1)
        loss.backward()
        opt.step()
        if it % 10 == 9:
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            if ring.rank == 0:
                print(f"iteration {it + 1}: loss {mean.item() / ring.world:.5f}", flush=True)


def main():
    dist.init_process_group("gloo")
    train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
