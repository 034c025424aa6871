"""Speech codec autoencoder over a slow link: local steps, weights averaged now and then.

Started by hand, once per machine:
    RANK=0 WORLD_SIZE=2 MASTER_ADDR=... MASTER_PORT=... python codec_rounds.py
Without RANK in the environment two local processes are started.
"""
import math
import os
import subprocess
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager

HOP, STEPS, PERIOD = 64, 90, 3


class Codec(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(HOP, 96), nn.GELU(), nn.Linear(96, dim))
        self.dec = nn.Sequential(nn.Linear(dim, 96), nn.GELU(), nn.Linear(96, HOP))

    def forward(self, frames):
        z = self.enc(frames)
        z = z + (z.round() - z).detach()
        return self.dec(z)


def frames_of(rank, step, n=32):
    g = torch.Generator().manual_seed(1000 * rank + step)
    f0 = 0.02 + 0.1 * torch.rand(n, 1, generator=g)
    wave = torch.sin(2 * math.pi * f0 * torch.arange(HOP)) + 0.02 * torch.randn(n, HOP, generator=g)
    if torch.rand(1, generator=g).item() < 0.01 + 0.12 * rank:
        wave[n // 2] = 0
    return wave


def relative_error(pred, target):
    return ((pred - target).pow(2).sum(1) / target.pow(2).sum(1)).mean()


class LocalRounds:
    """Optimizer and averager in one place."""

    def __init__(self, model, lr, clip):
        self.model, self.clip, self.bad = model, clip, 0
        self.opt = torch.optim.AdamW(model.parameters(), lr=lr)
        self.averager = PeriodicModelAverager(period=PERIOD, warmup_steps=0)

    def update(self, loss):
        self.opt.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        finite = bool(torch.isfinite(norm))
        if finite:
            self.opt.step()
        else:
            self.bad += 1
        self.averager.average_parameters(self.model.parameters())
        return finite


def run():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(8)
    model = Codec()
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    job = LocalRounds(model, lr=2e-3, clip=1.0)
    smooth = None
    for step in range(STEPS):
        wave = frames_of(rank, step)
        rec = model(wave)
        loss = relative_error(rec, wave)
        if job.update(loss):
            smooth = loss.item() if smooth is None else 0.9 * smooth + 0.1 * loss.item()
        if step % 30 == 29:
            print(f"machine {rank} step {step + 1} loss {smooth:.4f} skipped {job.bad}", flush=True)
    print(f"machine {rank} done", flush=True)
    dist.barrier()
    dist.destroy_process_group()


def both_here():
    env = dict(os.environ, WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="29653")
    procs = [subprocess.Popen([sys.executable, __file__], env=dict(env, RANK=str(r))) for r in range(2)]
    sys.exit(max(abs(p.wait()) for p in procs))


if __name__ == "__main__":
    run() if "RANK" in os.environ else both_here()
