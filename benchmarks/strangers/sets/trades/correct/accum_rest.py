"""Gradient accumulation where the last group of micro-batches may be short."""
import contextlib

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

ACCUM = 4


def make_set(n=300):
    g = torch.Generator().manual_seed(3)
    x = torch.randn(n, 12, generator=g)
    y = (x[:, :4].sum(1) > x[:, 4:8].prod(1)).long()
    return TensorDataset(x, y)


def train_epoch(model, loader, opt, sched, max_norm=1.0):
    n = len(loader)
    total = 0.0
    for i, (x, y) in enumerate(loader):
        last = (i + 1) % ACCUM == 0 or i + 1 == n
        # size of the group this micro-batch belongs to
        first = i - i % ACCUM
        group = min(ACCUM, n - first)
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(x), y) / group
            loss.backward()
        total += loss.item() * group
        if last:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            opt.step()
            sched.step()
            opt.zero_grad(set_to_none=True)
    return total / n


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(10 + rank)

    data = make_set()
    sampler = DistributedSampler(data, seed=8)
    loader = DataLoader(data, batch_size=16, sampler=sampler, drop_last=True)

    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 2))
    )
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
    groups = -(-len(loader) // ACCUM)
    epochs = 6
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=1e-2, total_steps=groups * epochs)

    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        loss = torch.tensor([train_epoch(model, loader, opt, sched)])
        dist.all_reduce(loss)
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item() / world:.4f} lr {sched.get_last_lr()[0]:.5f}", flush=True)

    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
