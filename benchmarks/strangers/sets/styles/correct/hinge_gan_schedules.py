"""Hinge GAN on rings: several critic steps per generator step, lazy gradient penalty, EMA generator on one rank."""
import argparse
import copy
import math
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


def ring(n, g):
    k = torch.randint(0, 8, (n,), generator=g)
    centre = torch.stack([(k * math.pi / 4).cos(), (k * math.pi / 4).sin()], 1)
    return centre + 0.05 * torch.randn(n, 2, generator=g)


def mlp(i, o, width=48):
    return nn.Sequential(nn.Linear(i, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2), nn.Linear(width, o))


class Every:
    """True once every n steps; counts steps, which advance together."""

    def __init__(self, n):
        self.n, self.t = n, 0

    def __call__(self):
        self.t += 1
        return self.t % self.n == 0


def freeze(net, flag):
    for p in net.parameters():
        p.requires_grad_(not flag)


def penalty(critic, real):
    """R1 through the bare module, with the result added to a loss of the wrapped one."""
    real = real.detach().requires_grad_(True)
    (grad,) = torch.autograd.grad(critic(real).sum(), real, create_graph=True)
    return grad.pow(2).sum(1).mean()


def worker(rank, world, port, args):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(0)
    gen, critic = DDP(mlp(8, 2)), DDP(mlp(2, 1))
    shadow = copy.deepcopy(gen.module).requires_grad_(False) if rank == 0 else None
    og = torch.optim.Adam(gen.parameters(), lr=1e-3, betas=(0.0, 0.99))
    oc = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.0, 0.99))
    g = torch.Generator().manual_seed(17 + rank)
    lazy_penalty, report = Every(8), Every(100)
    for it in range(args.iters):
        freeze(critic, False)
        for _ in range(args.critic_steps):
            real = ring(64, g)
            with torch.no_grad():
                fake = gen.module(torch.randn(64, 8, generator=g))
            a, b = critic(torch.cat([real, fake])).chunk(2)
            loss_c = F.relu(1 - a).mean() + F.relu(1 + b).mean()
            oc.zero_grad()
            loss_c.backward()
            oc.step()
        if lazy_penalty():
            oc.zero_grad()
            (4.0 * penalty(critic.module, ring(64, g))).backward()
            for p in critic.parameters():
                if p.grad is not None:
                    dist.all_reduce(p.grad)
                    p.grad /= world
            oc.step()
        freeze(critic, True)
        loss_g = -critic(gen(torch.randn(64, 8, generator=g))).mean()
        og.zero_grad()
        loss_g.backward()
        og.step()
        if shadow is not None:
            with torch.no_grad():
                for s, p in zip(shadow.parameters(), gen.module.parameters()):
                    s.lerp_(p, 0.01)
        if report() and rank == 0:
            with torch.no_grad():
                radius = shadow(torch.randn(256, 8)).norm(dim=1).mean().item()
            print(f"iter {it} critic {loss_c.item():.3f} gen {loss_g.item():.3f} radius {radius:.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--iters", type=int, default=200)
    p.add_argument("--critic-steps", type=int, default=2)
    p.add_argument("--world", type=int, default=2)
    args = p.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(args.world, port, args), nprocs=args.world)


if __name__ == "__main__":
    main()
