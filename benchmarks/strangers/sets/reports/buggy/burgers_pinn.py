"""Physics-informed network for a 1-D boundary value problem.

Adam first, then L-BFGS for the last digits. Every process draws its own collocation points.

    torchrun --nproc_per_node=2 burgers_pinn.py
"""
import math

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

NU = 0.1


class Field(nn.Module):
    def __init__(self, width=20, depth=3):
        super().__init__()
        layers, size = [], 1
        for _ in range(depth):
            layers += [nn.Linear(size, width), nn.Tanh()]
            size = width
        layers.append(nn.Linear(size, 1))
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        # hard boundary conditions u(0) = u(1) = 0
        return x * (1 - x) * self.net(x)


def source(x):
    u = torch.sin(math.pi * x)
    du = math.pi * torch.cos(math.pi * x)
    ddu = -math.pi ** 2 * u
    return u * du - NU * ddu


def residual(model, x):
    x = x.clone().requires_grad_(True)
    u = model(x)
    du, = torch.autograd.grad(u.sum(), x, create_graph=True)
    ddu, = torch.autograd.grad(du.sum(), x, create_graph=True)
    return u * du - NU * ddu - source(x)


class Physics(nn.Module):
    """Returns the residual from forward(), so that DDP sees the whole computation."""

    def __init__(self):
        super().__init__()
        self.field = Field()

    def forward(self, x):
        return residual(self.field, x)


def adam_phase(model, points, steps=60):
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(steps):
        opt.zero_grad()
        loss = model(points).pow(2).mean()
        loss.backward()
        opt.step()
    return loss.item()


def lbfgs_phase(model, points, rounds=8):
    opt = torch.optim.LBFGS(model.parameters(), lr=1.0, max_iter=15, history_size=20,
                            line_search_fn="strong_wolfe")

    def closure():
        opt.zero_grad()
        loss = model(points).pow(2).mean()
        loss.backward()
        return loss

    history = []
    for _ in range(rounds):
        history.append(float(opt.step(closure)))
        dist.barrier()
    return history


@torch.no_grad()
def error(model):
    x = torch.linspace(0, 1, 101).unsqueeze(1)
    return (model.module.field(x) - torch.sin(math.pi * x)).abs().max().item()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(Physics())
    g = torch.Generator().manual_seed(50 + rank)
    points = torch.rand(64, 1, generator=g)
    first = adam_phase(model, points)
    history = lbfgs_phase(model, points)
    if rank == 0:
        print(f"after Adam {first:.3e}, after L-BFGS {history[-1]:.3e}, max error {error(model):.3e}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
