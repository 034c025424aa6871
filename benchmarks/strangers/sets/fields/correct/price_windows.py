"""Electricity price regression. Accumulates over windows, and the last window of an epoch may be short."""
import contextlib
import math

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

ACCUM = 4


def series(n=430):
    t = torch.arange(n, dtype=torch.float)
    x = torch.stack([torch.sin(t / 24 * 2 * math.pi), torch.cos(t / 24 * 2 * math.pi), (t % 168) / 168], 1)
    return TensorDataset(x, (2 * x[:, :1] - x[:, 2:] + 0.1 * torch.randn(n, 1, generator=torch.Generator().manual_seed(0))))


class Accumulating:
    def __init__(self, model, opt, length):
        self.model, self.opt, self.length = model, opt, length
        self.i = 0

    def __call__(self, x, y):
        last_of_window = (self.i + 1) % ACCUM == 0 or self.i + 1 == self.length
        window_start = self.i // ACCUM * ACCUM
        size = min(ACCUM, self.length - window_start)
        with contextlib.nullcontext() if last_of_window else self.model.no_sync():
            loss = (self.model(x) - y).pow(2).mean()
            (loss / size).backward()
        if last_of_window:
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.opt.step()
            self.opt.zero_grad()
        self.i = (self.i + 1) % self.length
        return loss.detach()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = series()
    sampler = DistributedSampler(data, shuffle=True)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    model = DDP(nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1)))
    step = Accumulating(model, torch.optim.Adam(model.parameters(), lr=0.02), len(loader))
    for epoch in range(5):
        sampler.set_epoch(epoch)
        losses = torch.stack([step(x, y) for x, y in loader])
        mean = losses.mean()
        dist.all_reduce(mean)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} mse {mean.item() / dist.get_world_size():.4f} ({len(loader)} micro-batches)", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
