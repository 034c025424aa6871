import argparse
import os

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from sklearn.model_selection import KFold
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Subset, TensorDataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser(description="Toxicity from fingerprints, k-fold CV")
parser.add_argument("--folds", type=int, default=3)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--bits", type=int, default=64)
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--lr", type=float, default=5e-3)
parser.add_argument("--seed", type=int, default=7)


def fingerprints(args, n=360):
    rng = np.random.RandomState(args.seed)
    x = (rng.rand(n, args.bits) < 0.2).astype(np.float32)
    toxic = (x[:, :6].sum(1) + 0.5 * rng.randn(n) > 1.3).astype(np.float32)
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(toxic))


class FPNet(nn.Module):
    def __init__(self, bits):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(bits, 64), nn.LayerNorm(64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 1)
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)


def is_main():
    return int(os.environ.get("RANK", 0)) == 0


def train(model, loader, optimizer):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(x), y).backward()
        optimizer.step()


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    hit = torch.zeros(2)
    for x, y in loader:
        hit += torch.tensor([((model(x) > 0).float() == y).sum().item(), len(x)])
    dist.all_reduce(hit)
    return (hit[0] / hit[1]).item()


def run_fold(fold, dataset, train_idx, test_idx, args):
    dist.init_process_group(backend="gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(args.seed)

    train_set = Subset(dataset, train_idx.tolist())
    sampler = DistributedSampler(train_set, seed=args.seed + fold, drop_last=True)
    train_loader = DataLoader(train_set, args.batch_size, sampler=sampler, drop_last=True)
    test_loader = DataLoader(Subset(dataset, test_idx[rank::world].tolist()), 64)

    model = DDP(FPNet(args.bits))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    best = 0.0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        train(model, train_loader, optimizer)
        acc = evaluate(model.module, test_loader)
        best = max(best, acc)
        if is_main():
            print(f"fold {fold} epoch {epoch} acc {acc:.3f}", flush=True)
    dist.barrier()
    return best


def main():
    args = parser.parse_args()
    dataset = fingerprints(args)
    kf = KFold(n_splits=args.folds, shuffle=True, random_state=args.seed)
    scores = []
    for fold, (train_idx, test_idx) in enumerate(kf.split(np.zeros(len(dataset)))):
        scores.append(run_fold(fold, dataset, train_idx, test_idx, args))
    if is_main():
        print(f"CV accuracy {np.mean(scores):.3f} +- {np.std(scores):.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
