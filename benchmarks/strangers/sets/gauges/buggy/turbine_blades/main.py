"""Wear regression for turbine blades.  torchrun --nproc_per_node=2 main.py"""
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from factory import make_datasets
from rng import set_seed


@dataclass
class Config:
    seed: int = 1234
    epochs: int = 4
    batch_size: int = 20
    lr: float = 3e-3
    width: int = 128
    noise: float = 0.02
    val_fraction: float = 0.2


class WearNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(24, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    acc = torch.zeros(2)
    for x, y, _ in loader:
        acc[0] += ((model(x) - y) ** 2).sum()
        acc[1] += len(y)
    dist.all_reduce(acc)
    model.train()
    return (acc[0] / acc[1]).sqrt().item()


def main(cfg=Config()):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    set_seed(cfg.seed, rank)

    train_set, val_set = make_datasets(cfg)
    sampler = DistributedSampler(train_set, shuffle=True, seed=cfg.seed, drop_last=True)
    val_sampler = DistributedSampler(val_set, shuffle=False)
    train_loader = DataLoader(train_set, cfg.batch_size, sampler=sampler)
    val_loader = DataLoader(val_set, cfg.batch_size, sampler=val_sampler)

    model = DDP(WearNet(cfg.width))
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        sampler.set_epoch(epoch)
        for x, y, _ in train_loader:
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        rmse = evaluate(model.module, val_loader)
        if rank == 0:
            print(f"[{epoch}] train {loss.item():.4f}  val rmse {rmse:.4f}")
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
