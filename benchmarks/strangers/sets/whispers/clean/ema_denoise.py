"""Small denoiser with an EMA copy; every few steps the online network restarts from the average."""
import argparse
import copy
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class EMA:
    def __init__(self, model, beta=0.95, update_model_with_ema_every=None):
        self.online = model
        self.ema_model = copy.deepcopy(model).eval().requires_grad_(False)
        self.beta = beta
        self.every = update_model_with_ema_every
        self.step = 0

    @torch.no_grad()
    def update(self):
        self.step += 1
        for e, p in zip(self.ema_model.parameters(), self.online.parameters()):
            e.lerp_(p, 1 - self.beta)
        if self.every and self.step % self.every == 0:
            self.update_model_with_ema()

    @torch.no_grad()
    def update_model_with_ema(self):
        for p, e in zip(self.online.parameters(), self.ema_model.parameters()):
            p.copy_(e)


class Trainer:
    def __init__(self, args):
        self.args = args
        self.is_main = dist.get_rank() == 0
        torch.manual_seed(args.seed)
        net = nn.Sequential(nn.Linear(9, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 8))
        self.model = DDP(net)
        self.ema = EMA(self.model.module, update_model_with_ema_every=args.restart_every)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=args.lr)
        self.gen = torch.Generator().manual_seed(args.seed + 100 + dist.get_rank())

    def batch(self):
        x = torch.randn(32, 8, generator=self.gen)
        x = x / x.norm(dim=1, keepdim=True)
        t = torch.rand(32, 1, generator=self.gen)
        noise = torch.randn(32, 8, generator=self.gen)
        return torch.cat([x * (1 - t) + noise * t, t], 1), noise

    def train(self):
        for step in range(1, self.args.steps + 1):
            inp, noise = self.batch()
            loss = nn.functional.mse_loss(self.model(inp), noise)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.ema.update()
            if self.is_main and step % 20 == 0:
                print(f"{step}: loss {loss.item():.4f}", flush=True)
        dist.barrier()
        if self.is_main:
            torch.save(self.ema.ema_model.state_dict(), os.path.join(self.args.out, "ema.pt"))


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=80)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--restart-every", type=int, default=10)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--out", default=".")
    return p.parse_args()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Trainer(get_args()).train()
    dist.destroy_process_group()
