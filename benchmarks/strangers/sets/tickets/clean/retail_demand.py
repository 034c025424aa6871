"""Demand forecast for shops, probabilistic output, spawned workers."""
import socket
from types import SimpleNamespace

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

cfg = SimpleNamespace(history=28, horizon=7, shops=360, val_shops=60, batch_size=32, epochs=4, lr=3e-3, workers=2)


def make_series(n, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(cfg.history + cfg.horizon).float()
    level = 1 + torch.rand(n, 1, generator=g)
    week = torch.sin(2 * torch.pi * (t / 7 + torch.rand(n, 1, generator=g)))
    y = level + 0.5 * week + 0.1 * torch.randn(n, len(t), generator=g)
    return TensorDataset(y[:, :cfg.history], y[:, cfg.history:])


def get_loader(dataset, train):
    sampler = DistributedSampler(dataset, shuffle=train)
    return DataLoader(dataset, batch_size=cfg.batch_size, sampler=sampler, drop_last=train)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(cfg.history, 64), nn.ReLU(), nn.Linear(64, 2 * cfg.horizon))

    def forward(self, x):
        mean, log_std = self.body(x).chunk(2, -1)
        return torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())


def validate(model, loader):
    model.eval()
    total = torch.zeros(())
    with torch.no_grad():
        for past, future in loader:
            total += -model(past).log_prob(future).mean()
    mean = total / dist.get_world_size()
    dist.all_reduce(mean)
    model.train()
    return mean.item() / len(loader)


def worker(rank, port):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=cfg.workers)
    torch.manual_seed(0)
    train_loader = get_loader(make_series(cfg.shops, 1), train=True)
    val_loader = get_loader(make_series(cfg.val_shops, 2), train=False)
    model = DistributedDataParallel(Forecaster())
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        train_loader.sampler.set_epoch(epoch)
        for past, future in train_loader:
            loss = -model(past).log_prob(future).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        nll = validate(model.module, val_loader)
        if rank == 0:
            print(f"epoch {epoch}: train {loss.item():.3f} val nll {nll:.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    mp.spawn(worker, args=(free_port(),), nprocs=cfg.workers)
