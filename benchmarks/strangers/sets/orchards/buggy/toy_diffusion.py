"""DDPM on 2-D point clouds; gradients are averaged by hand (no wrapper)."""
import math
import os
import random
import sys

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn

CONFIG = {
    "world": 2,
    "seed": 17,
    "points": 4000,
    "T": 50,
    "hidden": 64,
    "batch": 128,
    "steps": 300,
    "lr": 2e-3,
    "log_every": 50,
    "port": 29671,
}


def seed_everything(seed, offset=0):
    s = seed + offset
    random.seed(s)
    np.random.seed(s)
    torch.manual_seed(s)


def two_moons(n, seed):
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, math.pi, n)
    flip = rng.integers(0, 2, n)
    x = np.where(flip, 1 - np.cos(t), np.cos(t))
    y = np.where(flip, 0.5 - np.sin(t), np.sin(t))
    return torch.tensor(np.stack([x, y], 1) + rng.normal(scale=0.05, size=(n, 2)), dtype=torch.float32)


class Denoiser(nn.Module):
    def __init__(self, T, hidden):
        super().__init__()
        self.time = nn.Embedding(T, hidden)
        self.inp = nn.Linear(2, hidden)
        self.mid = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(3))
        self.out = nn.Linear(hidden, 2)

    def forward(self, x, t):
        h = self.inp(x) + self.time(t)
        for m in self.mid:
            h = h + torch.relu(m(h))
        return self.out(h)


class Diffusion:
    def __init__(self, T):
        beta = torch.linspace(1e-3, 0.15, T)
        self.T, self.beta = T, beta
        self.abar = torch.cumprod(1 - beta, 0)

    def corrupt(self, x0):
        t = torch.randint(self.T, (len(x0),))
        eps = torch.randn_like(x0)
        a = self.abar[t].unsqueeze(1)
        return a.sqrt() * x0 + (1 - a).sqrt() * eps, t, eps

    @torch.no_grad()
    def sample(self, net, n):
        x = torch.randn(n, 2)
        for i in reversed(range(self.T)):
            t = torch.full((n,), i)
            a, b = self.abar[i], self.beta[i]
            x = (x - b / (1 - a).sqrt() * net(x, t)) / (1 - b).sqrt()
            if i:
                x = x + b.sqrt() * torch.randn_like(x)
        return x


class Worker:
    def __init__(self, rank, cfg):
        self.rank, self.cfg = rank, cfg
        # every process needs its own noise and its own time steps
        seed_everything(cfg["seed"], offset=rank)
        self.data = two_moons(cfg["points"], cfg["seed"])[rank::cfg["world"]]
        self.process = Diffusion(cfg["T"])
        self.build()

    def build(self):
        self.net = Denoiser(self.cfg["T"], self.cfg["hidden"])
        self.opt = torch.optim.Adam(self.net.parameters(), lr=self.cfg["lr"])

    def average_gradients(self):
        flat = torch.cat([p.grad.flatten() for p in self.net.parameters()])
        dist.all_reduce(flat)
        flat /= self.cfg["world"]
        at = 0
        for p in self.net.parameters():
            p.grad.copy_(flat[at:at + p.numel()].view_as(p))
            at += p.numel()

    def step(self):
        x0 = self.data[torch.randint(len(self.data), (self.cfg["batch"],))]
        xt, t, eps = self.process.corrupt(x0)
        loss = (self.net(xt, t) - eps).pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.average_gradients()
        self.opt.step()
        return loss.detach()

    def run(self):
        mean = torch.zeros(())
        for i in range(1, self.cfg["steps"] + 1):
            mean += self.step()
            if i % self.cfg["log_every"] == 0:
                dist.all_reduce(mean)
                if self.rank == 0:
                    print(f"step {i} mse {mean / self.cfg['world'] / self.cfg['log_every']:.4f}", flush=True)
                mean = torch.zeros(())
        if self.rank == 0:
            pts = self.process.sample(self.net, 256)
            print("sample mean", [round(v, 3) for v in pts.mean(0).tolist()])


def entry(rank, cfg):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(cfg["port"]))
    dist.init_process_group("gloo", rank=rank, world_size=cfg["world"])
    Worker(rank, cfg).run()
    dist.destroy_process_group()


if __name__ == "__main__":
    cfg = dict(CONFIG)
    if len(sys.argv) > 1:
        cfg["steps"] = int(sys.argv[1])
    mp.spawn(entry, args=(cfg,), nprocs=cfg["world"])
