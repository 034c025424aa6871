"""Aerosol optical depth retrieval from multi-band reflectances (MLP baseline).

    torchrun --nproc_per_node=2 aerosol_optical.py --epochs 3
"""
import argparse
import math
import os
from collections import deque

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Granules(Dataset):
    """Synthetic granules: 7 reflectances + 3 angles -> AOD at 550 nm."""

    def __init__(self, n=480, seed=11):
        rng = np.random.default_rng(seed)
        self.x = rng.normal(size=(n, 10)).astype(np.float32)
        w = rng.normal(size=(10,)).astype(np.float32)
        self.y = np.tanh(self.x @ w / 3.0).astype(np.float32)
        # sun-glint granules carry saturated retrievals
        glint = np.arange(n) % 97 == 45
        self.y[glint] = 60.0

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i]), torch.tensor([self.y[i]])


class SpikeGuard:
    """Keeps a short history of losses and flags values far above it."""

    def __init__(self, window=12, factor=8.0, warmup=3):
        self.history = deque(maxlen=window)
        self.factor = factor
        self.warmup = warmup
        self.seen = 0

    def accept(self, value):
        self.seen += 1
        if not math.isfinite(value):
            return False
        if self.seen > self.warmup and self.history:
            ref = sum(self.history) / len(self.history)
            if value > self.factor * ref:
                return False
        self.history.append(value)
        return True


class Retrieval(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, width), nn.GELU(), nn.Linear(width, width), nn.GELU())
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.body(x))


class Trainer:
    def __init__(self, args):
        self.args = args
        self.rank = dist.get_rank()
        self.world = dist.get_world_size()
        torch.manual_seed(args.seed)
        data = Granules()
        self.sampler = DistributedSampler(data, shuffle=True, seed=args.seed)
        self.loader = DataLoader(data, batch_size=args.batch, sampler=self.sampler, drop_last=True)
        self.net = DDP(Retrieval())
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=args.lr)
        self.guard = SpikeGuard()

    def step(self, x, y):
        loss = nn.functional.mse_loss(self.net(x), y)
        reject = torch.tensor(float(not self.guard.accept(loss.item())))
        dist.all_reduce(reject, op=dist.ReduceOp.MAX)
        if reject.item() > 0:
            self.opt.zero_grad(set_to_none=True)
            return None
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        return loss.item()

    def fit(self):
        for epoch in range(self.args.epochs):
            self.sampler.set_epoch(epoch)
            total, count = 0.0, 0
            for x, y in self.loader:
                value = self.step(x, y)
                if value is not None:
                    total += value
                    count += 1
            if self.rank == 0:
                print(f"epoch {epoch}: loss {total / max(count, 1):.4f} over {count} batches", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--seed", type=int, default=3)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    Trainer(args).fit()
    dist.barrier()
    if dist.get_rank() == 0:
        print("training finished", os.getpid())


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
