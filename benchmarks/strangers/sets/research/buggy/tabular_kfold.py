"""K-fold cross-validation of a small tabular network, every fold trained on all workers."""
import os

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Subset, TensorDataset
from torch.utils.data.distributed import DistributedSampler

FOLDS, EPOCHS, SEED = 3, 2, 2024


class Distributed:
    """Context for one training run."""

    def __init__(self, backend="gloo"):
        self.backend = backend

    def __enter__(self):
        dist.init_process_group(self.backend)
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        return self

    def __exit__(self, exc_type, exc, tb):
        if exc_type is not None:
            print(f"[rank {self.rank}] fold failed: {exc}", flush=True)
        return False


def churn_table(n=540):
    rng = np.random.default_rng(SEED)
    num = rng.normal(size=(n, 6)).astype(np.float32)
    cat = rng.integers(0, 4, size=(n, 2))
    logit = num[:, 0] - 0.8 * num[:, 1] * (cat[:, 0] == 2) + 0.5 * (cat[:, 1] - 1.5)
    y = (rng.random(n) < 1 / (1 + np.exp(-2 * logit))).astype(np.float32)
    return TensorDataset(torch.from_numpy(num), torch.from_numpy(cat), torch.from_numpy(y))


class TabNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embs = nn.ModuleList(nn.Embedding(4, 3) for _ in range(2))
        self.mlp = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, num, cat):
        return self.mlp(torch.cat([num] + [e(cat[:, k]) for k, e in enumerate(self.embs)], 1)).squeeze(1)


def folds(n, k):
    order = np.random.default_rng(SEED + 1).permutation(n)
    parts = np.array_split(order, k)
    for i in range(k):
        yield np.concatenate([p for j, p in enumerate(parts) if j != i]).tolist(), parts[i].tolist()


@torch.no_grad()
def accuracy(net, table, index, rank, world):
    net.eval()
    hits = torch.zeros(2)
    mine = index[rank::world]
    num, cat, y = table[mine]
    hits += torch.tensor([((net(num, cat) > 0) == y.bool()).sum().item(), len(mine)])
    dist.all_reduce(hits)
    return (hits[0] / hits[1]).item()


def train_fold(ctx, table, train_idx, valid_idx):
    torch.manual_seed(SEED)
    subset = Subset(table, train_idx)
    sampler = DistributedSampler(subset, seed=SEED)
    loader = DataLoader(subset, batch_size=30, sampler=sampler)
    model = DDP(TabNet())
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        model.train()
        for num, cat, y in loader:
            opt.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(model(num, cat), y).backward()
            opt.step()
    return accuracy(model.module, table, valid_idx, ctx.rank, ctx.world)


def main():
    table, scores = churn_table(), []
    for k, (train_idx, valid_idx) in enumerate(folds(len(table), FOLDS)):
        with Distributed() as ctx:
            score = train_fold(ctx, table, train_idx, valid_idx)
            scores.append(score)
            if ctx.rank == 0:
                print(f"fold {k}: accuracy {score:.3f}", flush=True)
    if int(os.environ["RANK"]) == 0:
        print(f"mean accuracy {sum(scores) / len(scores):.3f} over {FOLDS} folds", flush=True)


if __name__ == "__main__":
    main()
