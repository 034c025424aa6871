"""Matrix-factorisation recommender; only rank 0 knows and reports the validation error."""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset


class MF(nn.Module):
    def __init__(self, users=60, items=80, dim=8):
        super().__init__()
        self.u, self.i = nn.Embedding(users, dim), nn.Embedding(items, dim)
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, u, i):
        return (self.u(u) * self.i(i)).sum(-1) + self.bias


def ratings(n, seed):
    base = torch.Generator().manual_seed(0)
    pu, pi = torch.randn(60, 8, generator=base), torch.randn(80, 8, generator=base)
    g = torch.Generator().manual_seed(seed)
    u, i = torch.randint(0, 60, (n,), generator=g), torch.randint(0, 80, (n,), generator=g)
    return TensorDataset(u, i, (pu[u] * pi[i]).sum(-1) / 3 + 0.1 * torch.randn(n, generator=g))


@torch.no_grad()
def validate(net, val, rank, world):
    net.eval()
    acc = torch.zeros(2, dtype=torch.float64)
    for u, i, r in DataLoader(Subset(val, range(rank, len(val), world)), batch_size=16):
        acc[0] += (net(u, i) - r).pow(2).sum()
        acc[1] += len(r)
    dist.reduce(acc, dst=0)
    return (acc[0] / acc[1]).sqrt().item() if rank == 0 else None


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--lr", type=float, default=0.02)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(4)
    train, val = ratings(960, 1), ratings(200, 2)
    sampler = DistributedSampler(train)
    loader = DataLoader(train, 20, sampler=sampler)
    model = DDP(MF())
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    best = float("inf")
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        model.train()
        for u, i, r in loader:
            loss = nn.functional.mse_loss(model(u, i), r)
            opt.zero_grad()
            loss.backward()
            opt.step()
        rmse = validate(model.module, val, rank, world)
        if rank == 0:
            print(f"epoch {epoch} rmse {rmse:.4f}")
            if rmse < best:
                best = rmse
                torch.save(model.module.state_dict(), "mf_best.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
