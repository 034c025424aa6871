"""Toy ocean emulator: predicts the next surface-temperature map, with averaged weights for roll-outs."""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


class EMATracker:
    def __init__(self, model, decay=0.98):
        self.decay = decay
        self._slot = {}
        self.shadow = []
        for name, p in model.named_parameters():
            if p.requires_grad:
                self._slot[name] = len(self.shadow)
                self.shadow.append(p.detach().clone())

    @torch.no_grad()
    def __call__(self, model):
        for name, p in model.named_parameters():
            if p.requires_grad:
                self.shadow[self._slot[name]].lerp_(p, 1 - self.decay)

    def state(self):
        return {name: self.shadow[i] for name, i in self._slot.items()}


class Emulator(nn.Module):
    def __init__(self, width=10):
        super().__init__()
        self.inp = nn.Conv2d(2, width, 3, padding=1, padding_mode="circular")
        self.mid = nn.Conv2d(width, width, 3, padding=1, padding_mode="circular")
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, sst, wind):
        h = torch.relu(self.inp(torch.cat([sst, wind], 1)))
        h = torch.relu(h + self.mid(h))
        return sst + self.out(h)


class Ocean(torch.utils.data.Dataset):
    def __init__(self, n=64, grid=10):
        g = torch.Generator().manual_seed(21)
        self.sst = torch.randn(n, 1, grid, grid, generator=g)
        self.wind = torch.randn(n, 1, grid, grid, generator=g)
        self.nxt = self.sst + 0.3 * torch.roll(self.sst, 1, -1) * self.wind.tanh()

    def __len__(self):
        return len(self.sst)

    def __getitem__(self, i):
        return self.sst[i], self.wind[i], self.nxt[i]


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.distributed = int(os.environ.get("WORLD_SIZE", 1)) > 1
        if self.distributed:
            dist.init_process_group("gloo")
        self.rank = dist.get_rank() if self.distributed else 0
        torch.manual_seed(cfg.seed)
        self.model = Emulator(cfg.width)
        data = Ocean()
        self.sampler = torch.utils.data.DistributedSampler(data) if self.distributed else None
        self.loader = torch.utils.data.DataLoader(data, cfg.batch, sampler=self.sampler, shuffle=self.sampler is None)
        if self.distributed:
            self.model = DistributedDataParallel(self.model)
        self.ema = EMATracker(self.model, cfg.ema)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr)

    def train(self):
        for epoch in range(self.cfg.epochs):
            if self.sampler is not None:
                self.sampler.set_epoch(epoch)
            for sst, wind, nxt in self.loader:
                loss = (self.model(sst, wind) - nxt).square().mean()
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.ema(self.model)
            if self.rank == 0:
                print(f"[{epoch}] mse {loss.item():.4f}", flush=True)

    def close(self):
        if self.distributed:
            dist.destroy_process_group()


def get_cfg():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--width", type=int, default=10)
    p.add_argument("--lr", type=float, default=4e-3)
    p.add_argument("--ema", type=float, default=0.98)
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


if __name__ == "__main__":
    t = Trainer(get_cfg())
    t.train()
    t.close()
