"""Matrix factorisation on made-up ratings, with a bag of metrics.

    torchrun --nproc_per_node=2 movie_bag.py
"""
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@dataclass(frozen=True)
class HParams:
    users: int = 80
    items: int = 60
    rank: int = 8
    n_ratings: int = 3000
    batch_size: int = 64
    lr: float = 2e-2
    epochs: int = 4
    metrics: frozenset = frozenset({"mse", "mae", "bias", "hit", "pos_rate", "n"})


class MF(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.u = nn.Embedding(hp.users, hp.rank)
        self.v = nn.Embedding(hp.items, hp.rank)
        self.bu = nn.Embedding(hp.users, 1)
        self.bv = nn.Embedding(hp.items, 1)
        for e in (self.u, self.v):
            nn.init.normal_(e.weight, std=0.3)
        for e in (self.bu, self.bv):
            nn.init.zeros_(e.weight)

    def forward(self, i, j):
        dot = (self.u(i) * self.v(j)).sum(-1)
        return dot + self.bu(i).squeeze(-1) + self.bv(j).squeeze(-1)


def ratings(hp, seed=0):
    g = torch.Generator().manual_seed(seed)
    a = torch.randn(hp.users, 3, generator=g)
    b = torch.randn(hp.items, 3, generator=g)
    i = torch.randint(0, hp.users, (hp.n_ratings,), generator=g)
    j = torch.randint(0, hp.items, (hp.n_ratings,), generator=g)
    r = (a[i] * b[j]).sum(-1) + 0.3 * torch.randn(hp.n_ratings, generator=g) + 0.5
    cut = int(hp.n_ratings * 0.8)
    return TensorDataset(i[:cut], j[:cut], r[:cut]), TensorDataset(i[cut:], j[cut:], r[cut:])


METRICS = {
    "mse": lambda p, r: (p - r).pow(2).sum(),
    "mae": lambda p, r: (p - r).abs().sum(),
    "bias": lambda p, r: (p - r).sum(),
    "hit": lambda p, r: ((p > 0) == (r > 0)).float().sum(),
    "pos_rate": lambda p, r: (r > 0).float().sum(),
    "n": lambda p, r: torch.tensor(float(len(r))),
}


class MetricBag:
    """Sums of the requested metrics; `summary` is over all processes."""

    def __init__(self, names):
        self.names = names
        self.sums = {name: torch.zeros(()) for name in names}

    def update(self, pred, target):
        for name in self.names:
            self.sums[name] += METRICS[name](pred, target)

    def summary(self):
        packed = torch.stack([self.sums[name] for name in self.names])
        dist.all_reduce(packed)
        total = dict(zip(self.names, packed.tolist()))
        n = total.pop("n")
        return {k: v / n for k, v in total.items()}


@torch.no_grad()
def evaluate(model, loader, names):
    bag = MetricBag(names)
    for i, j, r in loader:
        bag.update(model.module(i, j), r)
    return bag.summary()


def main():
    hp = HParams()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)

    train_set, test_set = ratings(hp)
    sampler = DistributedSampler(train_set, shuffle=True)
    train_loader = DataLoader(train_set, hp.batch_size, sampler=sampler)
    test_loader = DataLoader(
        torch.utils.data.Subset(test_set, range(rank, len(test_set), world)), hp.batch_size
    )
    model = DDP(MF(hp))
    opt = torch.optim.Adam(model.parameters(), lr=hp.lr, weight_decay=1e-5)

    for epoch in range(hp.epochs):
        sampler.set_epoch(epoch)
        for i, j, r in train_loader:
            opt.zero_grad()
            (model(i, j) - r).pow(2).mean().backward()
            opt.step()
        stats = evaluate(model, test_loader, hp.metrics)
        if rank == 0:
            line = " ".join(f"{k}={stats[k]:.4f}" for k in sorted(stats))
            print(f"epoch {epoch} {line}", flush=True)

    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
