import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


class MF(nn.Module):
    def __init__(self, users, items, dim=12):
        super().__init__()
        self.u, self.i = nn.Embedding(users, dim), nn.Embedding(items, dim)
        self.b = nn.Parameter(torch.zeros(1))
        for emb in (self.u, self.i):
            nn.init.normal_(emb.weight, std=0.4)

    def forward(self, u, i):
        return (self.u(u) * self.i(i)).sum(1) + self.b


def ratings(rank, users, items):
    g = torch.Generator().manual_seed(31 + rank)
    n = 500 + 130 * rank
    u = torch.randint(0, users, (n,), generator=g)
    i = torch.randint(0, items, (n,), generator=g)
    return u, i, ((u % 3) == (i % 3)).float() * 2 - 1


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--users", type=int, default=60)
    ap.add_argument("--items", type=int, default=45)
    ap.add_argument("--epochs", type=int, default=10)
    o = ap.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = DistributedDataParallel(MF(o.users, o.items))
    opt = torch.optim.SGD(net.parameters(), lr=0.8)
    u, i, r = ratings(rank, o.users, o.items)
    for epoch in range(o.epochs):
        perm = torch.randperm(len(r), generator=torch.Generator().manual_seed(epoch * 7 + rank))
        total, seen = 0.0, 0
        with net.join():
            for idx in perm.split(50):
                loss = nn.functional.mse_loss(net(u[idx], i[idx]), r[idx])
                opt.zero_grad()
                loss.backward()
                opt.step()
                total += loss.item() * len(idx)
                seen += len(idx)
        t = torch.tensor([total, seen], dtype=torch.float64)
        dist.all_reduce(t)
        if rank == 0:
            print(f"epoch {epoch} mse {(t[0] / t[1]).item():.4f} over {int(t[1])}", flush=True)
    dist.destroy_process_group()
