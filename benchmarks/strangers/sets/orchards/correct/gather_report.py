"""Anomaly detector whose scores are collected by the last process, which writes the report."""
import csv
import os
from typing import Optional

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class AutoEncoder(nn.Module):
    def __init__(self, d=20, z=4):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, 32), nn.ELU(), nn.Linear(32, z))
        self.dec = nn.Sequential(nn.Linear(z, 32), nn.ELU(), nn.Linear(32, d))

    def forward(self, x):
        return self.dec(self.enc(x))


def machine_logs(n, odd, seed):
    g = torch.Generator().manual_seed(seed)
    basis = torch.randn(4, 20, generator=torch.Generator().manual_seed(1))
    x = torch.randn(n, 4, generator=g).tanh() @ basis + 0.05 * torch.randn(n, 20, generator=g)
    is_odd = torch.rand(n, generator=g) < odd
    x[is_odd] += torch.randn(int(is_odd.sum()), 20, generator=g)
    return x, is_odd


class Collector:
    def __init__(self, dst):
        self.rank, self.world, self.dst = dist.get_rank(), dist.get_world_size(), dst

    @property
    def here(self):
        return self.rank == self.dst

    def __call__(self, local: torch.Tensor, n: int) -> Optional[torch.Tensor]:
        """`local` holds items rank, rank+world, ... (the last ones maybe repeated)."""
        slots = [torch.empty_like(local) for _ in range(self.world)] if self.here else None
        dist.gather(local, slots, dst=self.dst)
        if not self.here:
            return None
        return torch.stack(slots, dim=1).flatten(0, 1)[:n]


def auroc(score, label):
    order = score.argsort()
    rank = torch.empty_like(order)
    rank[order] = torch.arange(1, len(score) + 1)
    pos = label.sum().item()
    neg = len(label) - pos
    return (rank[label].sum().item() - pos * (pos + 1) / 2) / (pos * neg)


@torch.no_grad()
def scores(model, ds):
    model.eval()
    dl = DataLoader(ds, 64, sampler=DistributedSampler(ds, shuffle=False))
    return torch.cat([(model.module(x) - x).pow(2).mean(1) for (x,) in dl])


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    x, _ = machine_logs(2048, 0.0, 5)
    train = TensorDataset(x)
    sampler = DistributedSampler(train)
    dl = DataLoader(train, 64, sampler=sampler)
    model = DDP(AutoEncoder())
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(6):
        sampler.set_epoch(epoch)
        for (xb,) in dl:
            loss = (model(xb) - xb).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    xt, odd = machine_logs(601, 0.1, 6)
    collect = Collector(dst=dist.get_world_size() - 1)
    full = collect(scores(model, TensorDataset(xt)), len(xt))
    if collect.here:
        os.makedirs("anomaly_out", exist_ok=True)
        with open("anomaly_out/report.csv", "w", newline="") as fh:
            w = csv.writer(fh)
            w.writerow(["row", "score", "odd"])
            w.writerows(zip(range(len(full)), full.tolist(), odd.tolist()))
        print(f"rank {collect.rank}: AUROC {auroc(full, odd):.3f} on {len(full)} rows", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
