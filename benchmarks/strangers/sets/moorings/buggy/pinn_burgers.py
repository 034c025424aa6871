"""Physics informed network for the Burgers equation; Adam warm-up, then L-BFGS as in most PINN codes."""
import argparse
import math
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

NU = 0.01 / math.pi


class PINN(nn.Module):
    def __init__(self, width=20, depth=3):
        super().__init__()
        sizes = [2] + [width] * depth + [1]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, tx):
        h = tx
        for layer in self.layers[:-1]:
            h = torch.tanh(layer(h))
        return self.layers[-1](h)


class Points:
    """Collocation, initial and boundary points of one worker."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.inner = torch.rand(n, 2, generator=g) * torch.tensor([1.0, 2.0]) - torch.tensor([0.0, 1.0])
        x = torch.rand(n // 4, 1, generator=g) * 2 - 1
        self.start = torch.cat([torch.zeros_like(x), x], 1)
        self.start_u = -torch.sin(math.pi * x)
        t = torch.rand(n // 4, 1, generator=g)
        self.wall = torch.cat([t, torch.sign(torch.rand(n // 4, 1, generator=g) - 0.5)], 1)


def residual_loss(model, pts):
    eps = 1e-2
    n = len(pts.inner)
    shift_t, shift_x = torch.tensor([eps, 0.0]), torch.tensor([0.0, eps])
    probe = torch.cat([pts.inner, pts.inner + shift_t, pts.inner - shift_t, pts.inner + shift_x, pts.inner - shift_x,
                       pts.start, pts.wall])
    u = model(probe)
    c, tp, tm, xp, xm = u[:5 * n].split(n)
    u_t, u_x = (tp - tm) / (2 * eps), (xp - xm) / (2 * eps)
    u_xx = (xp - 2 * c + xm) / eps ** 2
    start, wall = u[5 * n:].split([len(pts.start), len(pts.wall)])
    return ((u_t + c * u_x - NU * u_xx) ** 2).mean() + ((start - pts.start_u) ** 2).mean() + (wall ** 2).mean()


class Solver:
    def __init__(self, args):
        self.rank = int(os.environ["RANK"])
        self.args = args
        torch.manual_seed(args.seed)
        self.model = DDP(PINN())
        self.points = Points(args.points, seed=args.seed + 1 + self.rank)

    def warm_up(self):
        opt = torch.optim.Adam(self.model.parameters(), lr=2e-3)
        for _ in range(self.args.adam):
            opt.zero_grad()
            residual_loss(self.model, self.points).backward()
            opt.step()

    def polish(self):
        opt = torch.optim.LBFGS(self.model.parameters(), max_iter=20, history_size=20, line_search_fn="strong_wolfe")

        def closure():
            opt.zero_grad()
            loss = residual_loss(self.model, self.points)
            loss.backward()
            return loss

        for outer in range(self.args.lbfgs):
            loss = opt.step(closure)
            if self.rank == 0:
                print(f"lbfgs {outer}: {loss.item():.5f}", flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--points", type=int, default=60)
    ap.add_argument("--adam", type=int, default=20)
    ap.add_argument("--lbfgs", type=int, default=6)
    ap.add_argument("--seed", type=int, default=0)
    solver = Solver(ap.parse_args())
    solver.warm_up()
    solver.polish()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
