"""Gradient accumulation where the last group of the epoch is shorter."""
import contextlib

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

ACCUM, EPOCHS = 4, 2


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    g = torch.Generator().manual_seed(0)
    x = torch.randn(83, 10, generator=g)
    data = TensorDataset(x, (x[:, 0] * x[:, 1] > 0).long())
    sampler = DistributedSampler(data, num_replicas=world, rank=rank, seed=3)
    loader = DataLoader(data, batch_size=6, sampler=sampler)
    torch.manual_seed(100 + rank)
    model = DDP(nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2)))
    opt = torch.optim.AdamW(model.parameters(), lr=5e-3)
    n = len(loader)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        opt.zero_grad()
        for i, (a, b) in enumerate(loader):
            last = (i + 1) % ACCUM == 0 or i + 1 == n
            group = ACCUM if i < n - n % ACCUM else n % ACCUM
            ctx = contextlib.nullcontext() if last else model.no_sync()
            with ctx:
                loss = nn.functional.cross_entropy(model(a), b)
                (loss / group).backward()
            if last:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                opt.zero_grad()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
