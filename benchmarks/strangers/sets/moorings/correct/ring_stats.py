"""Genome windows: normalisation statistics travel around the ring of workers; then ordinary data-parallel training."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def ring_shift(t):
    """Gives t to the next worker, takes the one of the previous worker."""
    rank, world = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % world, (rank - 1) % world
    buf = torch.empty_like(t)
    if rank % 2 == 0:
        dist.send(t, dst=right)
        dist.recv(buf, src=left)
    else:
        dist.recv(buf, src=left)
        dist.send(t, dst=right)
    return buf


def global_moments(x):
    part = torch.stack([x.sum(), (x ** 2).sum(), torch.tensor(float(x.numel()))]).double()
    total = part.clone()
    for _ in range(dist.get_world_size() - 1):
        part = ring_shift(part)
        total += part
    mean = total[0] / total[2]
    return mean.float(), (total[1] / total[2] - mean ** 2).sqrt().float()


def say(text):
    """In the order of the ranks."""
    for r in range(dist.get_world_size()):
        if r == dist.get_rank():
            print(f"[{r}] {text}", flush=True)
        dist.barrier()


def windows(rank, n):
    g = torch.Generator().manual_seed(rank)
    x = torch.randn(n, 1, 50, generator=g) * (1 + rank) + 4
    return x, (x[:, 0, 10:20].mean(1) > x[:, 0, 30:40].mean(1)).long()


def main():
    rank = int(os.environ["RANK"])
    x, y = windows(rank, 128)
    mean, std = global_moments(x)
    say(f"mean {mean:.3f} std {std:.3f}")
    x = (x - mean) / std
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Conv1d(1, 8, 7, padding=3), nn.ReLU(), nn.Flatten(), nn.Linear(400, 2)))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(3):
        for idx in torch.randperm(128).split(16):
            loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    say(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
