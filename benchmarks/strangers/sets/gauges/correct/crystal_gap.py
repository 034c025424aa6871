"""Band gap regression with gradient accumulation; the last group of an epoch may be short.

Run: torchrun --nproc_per_node=2 crystal_gap.py
"""
from contextlib import nullcontext
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@dataclass(frozen=True)
class Config:
    n: int = 360
    batch: int = 12
    group: int = 4
    epochs: int = 3
    lr: float = 3e-3


def crystals(n):
    g = torch.Generator().manual_seed(1)
    x = torch.rand(n, 20, generator=g)
    gap = torch.relu((x[:, :10] - x[:, 10:]).sum(1, keepdim=True) + 0.5)
    return TensorDataset(x, gap)


def grouped(iterable, size):
    group = []
    for item in iterable:
        group.append(item)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


def main(cfg=Config()):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    data = crystals(cfg.n)
    sampler = DistributedSampler(data, drop_last=True)
    loader = DataLoader(data, cfg.batch, sampler=sampler)
    net = DistributedDataParallel(nn.Sequential(nn.Linear(20, 64), nn.SiLU(), nn.Linear(64, 1)))
    opt = torch.optim.AdamW(net.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        sampler.set_epoch(epoch)
        running = 0.0
        for micro in grouped(loader, cfg.group):
            n = sum(len(x) for x, _ in micro)
            for k, (x, y) in enumerate(micro):
                with net.no_sync() if k < len(micro) - 1 else nullcontext():
                    loss = nn.functional.l1_loss(net(x), y, reduction="sum") / n
                    loss.backward()
                running += loss.item()
            opt.step()
            opt.zero_grad(set_to_none=True)
        if rank == 0:
            print(f"epoch {epoch} running L1 {running:.3f}")
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
