"""Tide height forecaster. Config is a nest of dataclasses; `python -m torch.distributed.run tide_forecast.py`."""
import math
import os
import tempfile
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


@dataclass
class DataCfg:
    series: int = 64
    length: int = 48
    horizon: int = 6


@dataclass
class OptimCfg:
    lr: float = 1e-2
    weight_decay: float = 1e-4


@dataclass
class Cfg:
    data: DataCfg = field(default_factory=DataCfg)
    optim: OptimCfg = field(default_factory=OptimCfg)
    epochs: int = 4
    batch: int = 8
    log_dir: str = os.path.join(tempfile.gettempdir(), f"tide-{os.environ.get('MASTER_PORT', 'local')}")


class RunLog:
    """Writes the curve of the run; keeps its own group so that log traffic stays off the training group."""

    def __init__(self, cfg):
        os.makedirs(cfg.log_dir, exist_ok=True)
        self.path = os.path.join(cfg.log_dir, "curve.csv")
        self.group = dist.new_group()
        self.rows = []

    def add(self, epoch, value):
        t = torch.tensor([value])
        dist.all_reduce(t, group=self.group)
        self.rows.append((epoch, t.item() / dist.get_world_size(self.group)))

    def close(self):
        if dist.get_rank() != 0:
            return
        with open(self.path, "w") as f:
            f.writelines(f"{e},{v:.6f}\n" for e, v in self.rows)
        print("wrote", self.path, flush=True)


def tides(cfg: DataCfg):
    g = torch.Generator().manual_seed(0)
    phase = torch.rand(cfg.series, 1, generator=g) * 2 * math.pi
    t = torch.arange(cfg.length + cfg.horizon).float()
    h = torch.sin(t / 3.0 + phase) + 0.4 * torch.sin(t / 7.1 + 2 * phase)
    h = h + 0.05 * torch.randn(h.shape, generator=g)
    return h[:, :cfg.length], h[:, cfg.length:]


class Forecaster(nn.Module):
    def __init__(self, cfg: DataCfg):
        super().__init__()
        self.rnn = nn.GRU(1, 12, batch_first=True)
        self.head = nn.Linear(12, cfg.horizon)

    def forward(self, x):
        out, _ = self.rnn(x.unsqueeze(-1))
        return self.head(out[:, -1])


def run(cfg: Cfg):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(7)
    x, y = tides(cfg.data)
    x, y = x[rank::world], y[rank::world]
    model = DistributedDataParallel(Forecaster(cfg.data))
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.optim.lr, weight_decay=cfg.optim.weight_decay)
    log = RunLog(cfg) if rank == 0 else None
    for epoch in range(cfg.epochs):
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
        for idx in order.split(cfg.batch):
            loss = nn.functional.smooth_l1_loss(model(x[idx]), y[idx])
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
        if log is not None:
            log.add(epoch, loss.item())
    if log is not None:
        log.close()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    run(Cfg())
