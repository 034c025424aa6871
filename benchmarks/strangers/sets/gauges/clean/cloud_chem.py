"""Emulator of cloud chemistry tendencies with per-species loss bookkeeping.

launch: torchrun --nproc_per_node=2 cloud_chem.py
"""
import json
import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset, DistributedSampler

SPECIES = ("so2", "o3", "h2o2", "nh3")
SCALE = {"so2": 1.0, "o3": 4.0, "h2o2": 0.25, "nh3": 9.0}


def make_cells(n=512):
    """Each grid cell is dominated by one species; neighbouring cells share it."""
    g = torch.Generator().manual_seed(5)
    kind = torch.arange(n) % len(SPECIES)
    x = torch.randn(n, 12, generator=g)
    y = torch.stack([x[:, :6].sum(1), x[:, 6:].sum(1)], 1)
    factor = torch.tensor([SCALE[s] for s in SPECIES])[kind]
    return TensorDataset(x, y * factor[:, None], kind)


class SpeciesLoss:
    """Running squared error for every species met during the epoch."""

    def __init__(self):
        self.total = {}
        self.cells = {}

    def update(self, pred, target, kind):
        err = ((pred - target) ** 2).mean(1).detach()
        for k, e in zip(kind.tolist(), err.tolist()):
            name = SPECIES[k]
            self.total[name] = self.total.get(name, 0.0) + e
            self.cells[name] = self.cells.get(name, 0) + 1

    def compute(self):
        result = {}
        for name, value in sorted(self.total.items()):
            packed = torch.tensor([value, float(self.cells[name])], dtype=torch.float64)
            dist.all_reduce(packed)
            result[name] = (packed[0] / packed[1]).item()
        return result


class Emulator(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(len(SPECIES), 8)
        self.mlp = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, x, kind):
        return self.mlp(torch.cat([x, self.embed(kind)], -1))


def weights_from(report, ref):
    """Relative weights for the next epoch: harder species count a little more."""
    w = torch.ones(len(SPECIES))
    if report:
        for i, s in enumerate(SPECIES):
            w[i] = (report[s] / ref) ** 0.25
    return w / w.mean()


def run():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    cells = make_cells()
    sampler = DistributedSampler(cells, shuffle=True, seed=1)
    loader = DataLoader(cells, batch_size=32, sampler=sampler)
    net = DistributedDataParallel(Emulator())
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    history, report = [], {}
    for epoch in range(4):
        sampler.set_epoch(epoch)
        weights = weights_from(report, ref=max(report.values()) if report else 1.0)
        meter = SpeciesLoss()
        for x, y, kind in loader:
            pred = net(x, kind)
            loss = (weights[kind] * ((pred - y) ** 2).mean(1)).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            meter.update(pred, y, kind)
        report = meter.compute()
        history.append(report)
        if rank == 0:
            print(epoch, {k: round(v, 3) for k, v in sorted(report.items())})
    if rank == 0:
        with open(os.path.join(tempfile.mkdtemp(), "species.json"), "w") as f:
            json.dump(history, f)
    dist.barrier()


if __name__ == "__main__":
    run()
    dist.destroy_process_group()
