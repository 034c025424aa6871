"""Denoising diffusion on two-dimensional swirls, in the Trainer / GaussianDiffusion style."""
import argparse
import copy
import math

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def swirl(n, seed=0):
    g = torch.Generator().manual_seed(seed)
    t = 1.5 * math.pi * (1 + 2 * torch.rand(n, generator=g))
    x = torch.stack([t * t.cos(), t * t.sin()], 1) / 10
    return TensorDataset(x + 0.02 * torch.randn(n, 2, generator=g))


class Denoiser(nn.Module):
    def __init__(self, dim=64, steps=50):
        super().__init__()
        self.time = nn.Embedding(steps, dim)
        self.inp = nn.Linear(2, dim)
        self.mid = nn.Sequential(nn.SiLU(), nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim), nn.SiLU())
        self.out = nn.Linear(dim, 2)

    def forward(self, x, t):
        return self.out(self.mid(self.inp(x) + self.time(t)))


def unwrap(m):
    return m.module if hasattr(m, "module") else m


def cycle(loader, sampler):
    epoch = 0
    while True:
        sampler.set_epoch(epoch)
        yield from loader
        epoch += 1


class GaussianDiffusion:
    """Noise schedule, loss and ancestral sampling around a noise predictor."""

    def __init__(self, model, steps=50):
        self.model, self.steps = model, steps
        beta = torch.linspace(1e-3, 0.12, steps)
        self.alpha = 1 - beta
        self.bar = torch.cumprod(self.alpha, 0)
        self.beta = beta

    def q_sample(self, x0, t, noise):
        bar = self.bar[t].unsqueeze(1)
        return bar.sqrt() * x0 + (1 - bar).sqrt() * noise

    def p_losses(self, x0, generator):
        t = torch.randint(0, self.steps, (len(x0),), generator=generator)
        noise = torch.randn(x0.shape, generator=generator)
        pred = self.model(self.q_sample(x0, t, noise), t)
        snr = self.bar[t] / (1 - self.bar[t])
        weight = snr.clamp(max=5.0) / snr
        return (weight * (pred - noise).pow(2).mean(1)).mean()

    @torch.no_grad()
    def sample(self, net, n):
        x = torch.randn(n, 2)
        for step in reversed(range(self.steps)):
            t = torch.full((n,), step)
            eps = net(x, t)
            x = (x - self.beta[step] / (1 - self.bar[step]).sqrt() * eps) / self.alpha[step].sqrt()
            if step:
                x = x + self.beta[step].sqrt() * torch.randn_like(x)
        return x


class EMA:
    def __init__(self, model, beta=0.99):
        self.model, self.beta = copy.deepcopy(model).requires_grad_(False), beta

    @torch.no_grad()
    def update(self, source):
        for a, b in zip(self.model.parameters(), source.parameters()):
            a.lerp_(b.detach(), 1 - self.beta)


class Trainer:
    def __init__(self, net, dataset, args):
        self.args, self.rank = args, dist.get_rank()
        self.model = DDP(net)
        self.net = unwrap(self.model)
        self.ema = EMA(self.net)
        self.diffusion = GaussianDiffusion(self.net)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=args.lr, betas=(0.9, 0.99))
        sampler = DistributedSampler(dataset)
        self.batches = cycle(DataLoader(dataset, args.batch_size, sampler=sampler, drop_last=True), sampler)
        self.noise = torch.Generator().manual_seed(1234 + self.rank)
        self.step = 0

    def accumulate(self):
        """Gradient of several micro batches; only the last one communicates."""
        total = 0.0
        for k in range(self.args.grad_accum):
            (x0,) = next(self.batches)
            self.model.require_backward_grad_sync = k == self.args.grad_accum - 1
            loss = self.diffusion.p_losses(x0, self.noise) / self.args.grad_accum
            loss.backward()
            total += loss.item()
        return total

    def train(self):
        while self.step < self.args.steps:
            total = self.accumulate()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.opt.step()
            self.opt.zero_grad()
            self.ema.update(self.net)
            self.step += 1
            if self.step % 50 == 0 and self.rank == 0:
                pts = self.diffusion.sample(self.ema.model, 64)
                print(f"step {self.step} loss {total:.4f} spread {pts.std().item():.3f}", flush=True)
        dist.barrier()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=150)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--grad-accum", type=int, default=2)
    p.add_argument("--lr", type=float, default=2e-3)
    args = p.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    Trainer(Denoiser(), swirl(1024), args).train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
