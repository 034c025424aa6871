import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import dist_utils as du
from augment import TwoViews
from losses import NTXent
from probe import knn_accuracy


class Encoder(nn.Module):
    def __init__(self, d_in=64, d=64, proj=32):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(d_in, 128), nn.ReLU(), nn.Linear(128, d))
        self.head = nn.Sequential(nn.ReLU(), nn.Linear(d, proj))

    def features(self, x):
        return self.trunk(x)

    def forward(self, x):
        return self.head(self.trunk(x))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=6)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--seed", type=int, default=5)
    args = ap.parse_args()

    rank, world = du.setup()
    torch.manual_seed(args.seed)
    x, y = load_digits(return_X_y=True)
    ds = TensorDataset(torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y))
    sampler = DistributedSampler(ds, seed=args.seed, drop_last=True)
    loader = DataLoader(ds, args.batch, sampler=sampler, drop_last=True)
    model = DDP(Encoder())
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    views = TwoViews(seed=args.seed + rank)
    crit = NTXent()
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        total = 0.0
        for xb, _ in loader:
            a, b = views(xb)
            z = model(torch.cat([a, b]))
            loss = crit(*z.chunk(2))
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        mean = du.mean_over_ranks(total / len(loader))
        acc = knn_accuracy(model.module, loader)
        if rank == 0:
            print(f"epoch {epoch} loss {mean:.4f} knn {acc:.3f}", flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
