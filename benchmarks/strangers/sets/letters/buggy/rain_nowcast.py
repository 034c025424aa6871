#!/usr/bin/env python
"""Rain radar nowcasting: the next frame from the last four."""
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Radar(Dataset):
    def __init__(self, n=192, side=14, past=4):
        g = torch.Generator().manual_seed(3)
        base = torch.randn(n, 1, side, side, generator=g)
        base = nn.functional.avg_pool2d(base, 3, 1, 1).relu()
        drift = torch.randint(-1, 2, (n, 2), generator=g).tolist()
        self.seq = torch.stack([
            torch.cat([torch.roll(b, (k * dy, k * dx), (1, 2)) for k in range(past + 1)])
            for b, (dy, dx) in zip(base, drift)])

    def __len__(self):
        return len(self.seq)

    def __getitem__(self, i):
        return self.seq[i, :-1], self.seq[i, -1:]


class Nowcaster(nn.Module):
    def __init__(self, past=4, width=16):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(past, width, 3, padding=1, padding_mode="circular"),
                                     nn.Conv2d(width, width, 3, padding=1, padding_mode="circular")])
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        h = x
        for layer in self.layers:
            h = torch.relu(layer(h))
        return x[:, -1:] + self.out(h)


def build(args, rank):
    radar = Radar()
    sampler = DistributedSampler(radar, rank=rank, num_replicas=int(os.environ["WORLD_SIZE"]))
    loader = DataLoader(radar, batch_size=args.batch_size, sampler=sampler, drop_last=True)
    model = DistributedDataParallel(Nowcaster())
    opt = torch.optim.AdamW(model.parameters(), lr=args.max_lr, weight_decay=1e-4)
    per_epoch = len(radar) // args.batch_size
    sched = OneCycleLR(opt, max_lr=args.max_lr, total_steps=args.epochs * per_epoch, pct_start=0.3)
    return sampler, loader, model, opt, sched


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--epochs", type=int, default=8)
    ap.add_argument("--batch-size", type=int, default=8)
    ap.add_argument("--max-lr", type=float, default=1e-2)
    args = ap.parse_args()
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(1)
    sampler, loader, model, opt, sched = build(args, rank)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for past, nxt in loader:
            loss = nn.functional.l1_loss(model(past), nxt)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
        if rank == 0:
            print(f"epoch {epoch} mae {loss.item():.4f} lr {opt.param_groups[0]['lr']:.2e}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
