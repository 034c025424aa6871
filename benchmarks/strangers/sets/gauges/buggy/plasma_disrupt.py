"""Disruption precursor detection on tokamak diagnostics (small causal conv net).

    torchrun --nproc_per_node=2 plasma_disrupt.py
"""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Subset, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def shots(n=320, steps=32, seed=0):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 4, steps, generator=g)
    score = x[:, 0, -8:].mean(1) + 0.6 * x[:, 1, -4:].mean(1)
    y = (score > 0).float()
    # the second campaign has noisier labels
    late = torch.arange(n) >= n // 2
    flip = (torch.rand(n, generator=g) < 0.35) & late
    y[flip] = 1 - y[flip]
    return TensorDataset(x, y)


class CausalNet(nn.Module):
    def __init__(self, ch=16):
        super().__init__()
        self.c1 = nn.Conv1d(4, ch, 3)
        self.c2 = nn.Conv1d(ch, ch, 3, dilation=2)
        self.out = nn.Linear(ch, 1)

    def forward(self, x):
        h = torch.relu(self.c1(nn.functional.pad(x, (2, 0))))
        h = torch.relu(self.c2(nn.functional.pad(h, (4, 0))))
        return self.out(h[..., -1]).squeeze(-1)


class Logger:
    def __init__(self, rank):
        self.rank = rank
        self.rows = []

    def log(self, epoch, loss_sum, n, lr):
        """Write the loss over the whole validation campaign."""
        packed = torch.tensor([loss_sum, float(n)])
        dist.all_reduce(packed)
        total_loss = (packed[0] / packed[1]).item()
        self.rows.append((epoch, total_loss, lr))
        if self.rank == 0:
            print(f"epoch {epoch:2d}  valid {total_loss:.4f}  lr {lr:.2e}")
        return total_loss


def validate(model, loader, crit):
    model.eval()
    loss_sum, n = 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            loss_sum += crit(model(x), y).item() * len(y)
            n += len(y)
    model.train()
    return loss_sum, n


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=14)
    p.add_argument("--lr", type=float, default=1e-2)
    p.add_argument("--patience", type=int, default=1)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()

    data = shots()
    valid = shots(n=200, seed=1)
    per = len(valid) // world
    valid_part = Subset(valid, range(rank * per, (rank + 1) * per))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 16, sampler=sampler)
    valid_loader = DataLoader(valid_part, 50)

    torch.manual_seed(1)
    model = DDP(CausalNet())
    crit = nn.BCEWithLogitsLoss()
    opt = torch.optim.SGD(model.parameters(), lr=args.lr * 20, momentum=0.9)
    sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=args.patience)
    log = Logger(rank)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = crit(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        loss_sum, n = validate(model.module, valid_loader, crit)
        total_loss = loss_sum / n
        log.log(epoch, loss_sum, n, opt.param_groups[0]["lr"])
        sched.step(total_loss)
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
