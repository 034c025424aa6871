import argparse
import os
from collections import defaultdict

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, Subset


class CrownPatches(Dataset):
    """Feature patches; `count` is the number of annotated crowns in the patch."""

    def __init__(self, n, empty_after=None, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randn(n, 24, generator=g)
        self.count = torch.randint(1, 6, (n,), generator=g)
        if empty_after is not None:
            self.count[empty_after:] = 0
        self.x[:, 0] = self.count.float()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.count[i].float()


class CountMAE:
    """Mean absolute count error over the non-empty patches."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.errors = []

    def update(self, pred, target):
        keep = target > 0
        self.errors.extend((pred[keep] - target[keep]).abs().tolist())

    def compute(self):
        gathered = [None] * dist.get_world_size()
        dist.all_gather_object(gathered, self.errors)
        flat = [e for part in gathered for e in part]
        return sum(flat) / len(flat) if flat else 0.0


class Precision:
    def __init__(self):
        self.reset()

    def reset(self):
        self.hit = torch.zeros(2)

    def update(self, pred, target):
        found = pred > 0.5
        self.hit += torch.tensor([float((found & (target > 0)).sum()), float(found.sum())])

    def compute(self):
        total = self.hit.clone()
        dist.all_reduce(total)
        return (total[0] / total[1].clamp(min=1)).item()


class Evaluator:
    def __init__(self, loader):
        self.loader = loader
        self.mae = CountMAE()
        self.precision = Precision()

    @torch.no_grad()
    def run(self, net):
        net.eval()
        self.mae.reset()
        self.precision.reset()
        for x, y in self.loader:
            pred = net(x).squeeze(1)
            self.mae.update(pred, y)
            self.precision.update(pred, y)
        metrics = {}
        if len(self.mae.errors) > 0:
            metrics["count_mae"] = self.mae.compute()
        metrics["precision"] = self.precision.compute()
        net.train()
        return metrics


def shard(dataset, rank, world):
    per = len(dataset) // world
    return Subset(dataset, range(rank * per, (rank + 1) * per))


def main(args):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(args.seed)
    net = DDP(nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 1)))
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)
    train = shard(CrownPatches(256), rank, world)
    val = shard(CrownPatches(64, empty_after=32, seed=5), rank, world)
    loader = DataLoader(train, batch_size=16, shuffle=True)
    evaluator = Evaluator(DataLoader(val, batch_size=16))

    for epoch in range(args.epochs):
        for x, y in loader:
            loss = F.smooth_l1_loss(net(x).squeeze(1), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        metrics = evaluator.run(net.module)
        if rank == 0:
            print(epoch, {k: round(v, 3) for k, v in metrics.items()}, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--lr", type=float, default=5e-3)
    ap.add_argument("--seed", type=int, default=0)
    main(ap.parse_args())
