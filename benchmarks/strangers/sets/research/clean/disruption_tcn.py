"""Temporal convolution for rare-event detection in diagnostics, mixed shots per worker."""
import argparse
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class TCN(nn.Module):
    def __init__(self, channels=10, levels=3):
        super().__init__()
        layers, width = [], 4
        for k in range(levels):
            layers += [nn.Conv1d(width, channels, 3, dilation=2 ** k, padding=2 ** k), nn.ReLU()]
            width = channels
        self.tcn, self.linear = nn.Sequential(*layers), nn.Linear(channels, 1)

    def forward(self, x):
        return self.linear(self.tcn(x).transpose(1, 2)).squeeze(-1)


def shots(n, seed, noise):
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(40).float()
    onset = torch.randint(15, 38, (n, 1), generator=g)
    label = (t >= onset).float()
    signature = torch.tensor([1.0, -0.6, 0.3, 0.0])[None, :, None]
    x = torch.randn(n, 4, 40, generator=g) * noise + label[:, None] * signature
    return TensorDataset(x, label)


def evaluate(model, loader):
    model.eval()
    total_loss, correct, count = 0.0, 0.0, 0
    with torch.no_grad():
        for data, target in loader:
            out = model.module(data)
            total_loss += F.binary_cross_entropy_with_logits(out, target, reduction="sum").item()
            correct += ((out > 0) == target.bool()).sum().item()
            count += target.numel()
    return total_loss, correct, count


def train_epoch(model, loader, optimizer):
    model.train()
    for data, target in loader:
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(model(data), target).backward()
        optimizer.step()


def log_epoch(epoch, total_loss, correct, count, lr, rank):
    stats = torch.tensor([total_loss, correct, count], dtype=torch.float64)
    dist.all_reduce(stats)
    if rank == 0:
        print(f"epoch {epoch:2d}  val loss {stats[0] / stats[2]:.4f}  acc {stats[1] / stats[2]:.4f}  lr {lr:.5f}", flush=True)


def fit(args, rank):
    torch.manual_seed(args.seed)
    train_set, val_set = shots(160, 1, 1.5), shots(36, 2, 1.5)
    sampler = DistributedSampler(train_set, seed=args.seed)
    train_loader = DataLoader(train_set, batch_size=args.batch_size, sampler=sampler)
    val_loader = DataLoader(Subset(val_set, range(rank, len(val_set), args.workers)), batch_size=12)
    model = DistributedDataParallel(TCN())
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    lr_scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=args.patience, threshold=1e-3)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        train_epoch(model, train_loader, optimizer)
        total_loss, correct, count = evaluate(model, val_loader)
        overall = torch.tensor([total_loss, count], dtype=torch.float64)
        dist.all_reduce(overall)
        lr_scheduler.step((overall[0] / overall[1]).item())
        log_epoch(epoch, total_loss, correct, count, optimizer.param_groups[0]["lr"], rank)


def main_worker(rank, args):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{args.port}", world_size=args.workers, rank=rank)
    fit(args, rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="sequence modeling, rare events")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--port", type=int, default=29377)
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--batch-size", type=int, default=10)
    parser.add_argument("--patience", type=int, default=1)
    parser.add_argument("--lr", type=float, default=2e-2)
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    mp.spawn(main_worker, nprocs=options.workers, args=(options,))
