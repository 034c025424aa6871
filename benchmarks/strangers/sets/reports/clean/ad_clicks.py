"""Click prediction with hashed categorical features.

    torchrun --nproc_per_node=2 ad_clicks.py
"""
import argparse
import random
import zlib

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

SITES = [f"site{i}.example" for i in range(40)]
DEVICES = ["phone", "tablet", "desktop", "tv"]
BRANDS = [f"brand-{i}" for i in range(30)]


def impressions(n, seed):
    """Raw log lines as a list of dicts. Some sites, brands and devices get more clicks."""
    rnd = random.Random(seed)
    rows = []
    for _ in range(n):
        s, d, b = rnd.randrange(40), rnd.randrange(4), rnd.randrange(30)
        p = 0.08 + 0.4 * (s % 3 == 0) + 0.35 * (b % 4 == 1) + 0.1 * (d == 0)
        rows.append({"site": SITES[s], "device": DEVICES[d], "brand": BRANDS[b], "click": int(rnd.random() < p)})
    return rows


class HashedFeatures:
    """Maps field=value strings, and their pairs, into a fixed number of buckets."""

    def __init__(self, buckets, crosses):
        self.buckets, self.crosses = buckets, crosses

    def __call__(self, row):
        keys = [f"{k}={v}" for k, v in row.items() if k != "click"]
        keys += ["&".join(f"{k}={row[k]}" for k in cross) for cross in self.crosses]
        return torch.tensor([zlib.crc32(k.encode()) % self.buckets for k in keys])


class Impressions(Dataset):
    def __init__(self, rows, featurize):
        self.rows, self.featurize = rows, featurize

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.featurize(self.rows[i]), float(self.rows[i]["click"])


class ClickNet(nn.Module):
    def __init__(self, buckets, dim=8):
        super().__init__()
        self.bag = nn.EmbeddingBag(buckets, dim, mode="sum")
        self.linear = nn.EmbeddingBag(buckets, 1, mode="sum")
        self.deep = nn.Sequential(nn.Linear(dim, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, ids):
        return (self.linear(ids) + self.deep(self.bag(ids))).squeeze(1)


@torch.no_grad()
def evaluate(model, loader):
    stats = torch.zeros(2, dtype=torch.float64)
    for ids, click in loader:
        loss = nn.functional.binary_cross_entropy_with_logits(model.module(ids), click, reduction="sum")
        stats += torch.tensor([loss.item(), len(click)], dtype=torch.float64)
    dist.all_reduce(stats)
    return (stats[0] / stats[1]).item()


def main(args):
    dist.init_process_group("gloo")
    torch.manual_seed(args.seed)
    featurize = HashedFeatures(args.buckets, crosses=[("device", "brand")])
    train = Impressions(impressions(3000, seed=1), featurize)
    test = Impressions(impressions(600, seed=2), featurize)
    sampler = DistributedSampler(train, seed=args.seed)
    loader = DataLoader(train, batch_size=50, sampler=sampler)
    test_loader = DataLoader(test, batch_size=100, sampler=DistributedSampler(test, shuffle=False))
    model = DDP(ClickNet(args.buckets))
    opt = torch.optim.Adagrad(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for ids, click in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(ids), click.float())
            opt.zero_grad()
            loss.backward()
            opt.step()
        nll = evaluate(model, test_loader)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} test log-loss {nll:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--buckets", type=int, default=512)
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--lr", type=float, default=0.05)
    ap.add_argument("--seed", type=int, default=17)
    main(ap.parse_args())
