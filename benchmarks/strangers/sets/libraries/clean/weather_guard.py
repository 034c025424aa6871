"""Forecast of gridded series with a guard against loss spikes."""
import collections
import math

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

WINDOW, HORIZON, CELLS = 12, 3, 6


def make_spike_guard(factor=8.0, keep=10):
    history = collections.deque(maxlen=keep)

    def is_anomalous(value):
        if not math.isfinite(value):
            return True
        if len(history) < 3:
            return False
        return value > factor * sorted(history)[len(history) // 2]

    def skip_step(loss):
        """All ranks leave the step out together, or none does."""
        bad = is_anomalous(loss.item())
        if not bad:
            history.append(loss.item())
        flag = torch.tensor(float(bad))
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag.item())

    return skip_step


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(WINDOW * CELLS, 64), nn.ReLU(), nn.Linear(64, HORIZON * CELLS))

    def forward(self, past):
        return self.net(past.flatten(1)).view(-1, HORIZON, CELLS)


def station_records(rank, steps):
    g = torch.Generator().manual_seed(200 + rank)
    phase = torch.rand(CELLS, generator=g) * 6.28
    for step in range(steps):
        t = torch.rand(16, 1, 1, generator=g) * 50 + torch.arange(WINDOW + HORIZON)[None, :, None]
        field = torch.sin(0.5 * t + phase) + 0.1 * torch.randn(16, WINDOW + HORIZON, CELLS, generator=g)
        if rank == 1 and step == 12:
            field[3, WINDOW:] = 9999.0  # missing-value code of the archive
        yield field[:, :WINDOW], field[:, WINDOW:]


def train(steps=24):
    rank = dist.get_rank()
    torch.manual_seed(6)
    model = DDP(Forecaster())
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    skip_step = make_spike_guard()
    skipped = 0
    for past, future in station_records(rank, steps):
        loss = nn.functional.mse_loss(model(past), future)
        opt.zero_grad()
        loss.backward()
        if skip_step(loss):
            skipped += 1
            continue
        opt.step()
    size = torch.stack([p.detach().abs().max() for p in model.parameters()]).max()
    print(f"rank {rank}: skipped {skipped}, last loss here {loss.item():.4f}, largest weight {size:.2f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.destroy_process_group()
