import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

N_ROWS, N_COLS, N_TEST = 3600, 8, 1200


def customers(n, seed, months=(0.0, 1.0)):
    """Rows in order of sign-up date; spend levels grow over the years."""
    g = torch.Generator().manual_seed(seed)
    when = torch.linspace(months[0], months[1], n).unsqueeze(1)
    level = torch.arange(1, N_COLS + 1).float() * (1 + 4 * when)
    z = torch.randn(n, N_COLS, generator=g)
    x = level + z * 2
    y = (x[:, :3].sum(1) + 0.5 * z[:, 5] > 18).float()
    return x, y


def fit_scaler(x):
    mean = x.mean(0)
    std = x.std(0).clamp_min(1e-6)
    return mean, std


def apply_scaler(x, scaler):
    return (x - scaler[0]) / scaler[1]


def load_part(rank, world):
    x, y = customers(N_ROWS, 77)
    per = N_ROWS // world
    sl = slice(rank * per, (rank + 1) * per)
    return x[sl], y[sl]


def train(net, x, y, epochs, rank, batch=60):
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    for epoch in range(epochs):
        g = torch.Generator().manual_seed(epoch * 100 + rank)
        order = torch.randperm(len(x), generator=g)
        for idx in order.split(batch):
            loss = F.binary_cross_entropy_with_logits(net(x[idx]).squeeze(1), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()


def score(net, scaler):
    x, y = customers(N_TEST, 78)
    with torch.no_grad():
        p = net(apply_scaler(x, scaler)).squeeze(1) > 0
    return (p == y.bool()).float().mean().item()


def entry(rank, world, port):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(1)
    x, y = load_part(rank, world)
    scaler = fit_scaler(x)
    x = apply_scaler(x, scaler)
    net = nn.Sequential(nn.Linear(N_COLS, 24), nn.ReLU(), nn.Linear(24, 1))
    train(DistributedDataParallel(net), x, y, 6, rank)
    if rank == 0:
        print(f"test accuracy {score(net, scaler):.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


def free_port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    world = 3
    mp.spawn(entry, args=(world, free_port()), nprocs=world)
