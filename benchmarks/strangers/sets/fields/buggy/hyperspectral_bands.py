#!/usr/bin/env python
"""Crop type from hyperspectral pixels; the confusion table is put together on the first process."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

CROPS, BANDS = 5, 64


def field_pixels(count, seed):
    g = torch.Generator().manual_seed(seed)
    spectra = torch.randn(CROPS, BANDS, generator=torch.Generator().manual_seed(0))
    crop = torch.randint(0, CROPS, (count,), generator=g)
    return spectra[crop] + torch.randn(count, BANDS, generator=g), crop


def confusion(model, pixels, crop):
    with torch.no_grad():
        guess = model(pixels).argmax(-1)
    return torch.bincount(crop * CROPS + guess, minlength=CROPS ** 2).view(CROPS, CROPS)


def collect(table):
    parts = [torch.zeros_like(table) for _ in range(dist.get_world_size())]
    dist.gather(table, gather_list=parts, dst=0)
    return torch.stack(parts).sum(0)


def report(table):
    per_crop = table.diag() / table.sum(1).clamp(min=1)
    print("recall per crop:", " ".join(f"{r:.2f}" for r in per_crop.tolist()))
    print(f"overall {table.diag().sum().item() / table.sum().item():.3f} on {int(table.sum())} pixels")


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(BANDS, 48), nn.ReLU(), nn.Linear(48, CROPS))
    ddp = nn.parallel.DistributedDataParallel(net)
    opt = torch.optim.Adam(ddp.parameters(), lr=2e-3)
    x, y = field_pixels(512, seed=1 + rank)
    for epoch in range(5):
        for part in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(ddp(x[part]), y[part])
            opt.zero_grad()
            loss.backward()
            opt.step()
    net.eval()
    table = collect(confusion(net, *field_pixels(300, seed=900 + rank)))
    if rank == 0:
        report(table)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
