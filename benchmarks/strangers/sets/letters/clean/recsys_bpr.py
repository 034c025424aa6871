"""Matrix-factorisation recommender with a BPR loss."""
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn

USERS, ITEMS, DIM = 120, 200, 16


class Taste(nn.Module):
    def __init__(self):
        super().__init__()
        self.user = nn.Embedding(USERS, DIM)
        self.item = nn.Embedding(ITEMS, DIM)
        self.bias = nn.Embedding(ITEMS, 1)
        for e in (self.user, self.item):
            nn.init.normal_(e.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def score(self, u, i):
        return (self.user(u) * self.item(i)).sum(-1) + self.bias(i).squeeze(-1)

    def forward(self, u, pos, neg):
        margin = self.score(u, pos) - self.score(u, neg)
        reg = self.user(u).square().mean() + self.item(pos).square().mean() + self.item(neg).square().mean()
        return -F.logsigmoid(margin).mean() + 1e-3 * reg


def clicks():
    g = torch.Generator().manual_seed(13)
    a, b = torch.randn(USERS, 4, generator=g), torch.randn(ITEMS, 4, generator=g)
    top = (a @ b.t() + 0.3 * torch.randn(USERS, ITEMS, generator=g)).topk(14, dim=1).indices
    u = torch.arange(USERS).repeat_interleave(14)
    return u, top.flatten()


class Trainer:
    def __init__(self, rank, world):
        self.rank, self.world = rank, world
        torch.manual_seed(21)
        self.model = nn.parallel.DistributedDataParallel(Taste())
        self.opt = torch.optim.Adam(self.model.parameters(), lr=0.02)
        u, i = clicks()
        self.u, self.i = u[rank::world], i[rank::world]
        self.gen = torch.Generator().manual_seed(400 + rank)

    def epoch(self):
        total = 0.0
        parts = torch.randperm(len(self.u), generator=self.gen).split(70)
        for idx in parts:
            neg = torch.randint(0, ITEMS, (len(idx),), generator=self.gen)
            loss = self.model(self.u[idx], self.i[idx], neg)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item()
        return total / len(parts)

    def norms(self):
        return [round(p.norm().item(), 4) for p in self.model.parameters()]


def run(rank, world):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    trainer = Trainer(rank, world)
    for e in range(5):
        loss = trainer.epoch()
        print(f"[{rank}] epoch {e} bpr {loss:.4f}", flush=True)
    print(f"[{rank}] norms {trainer.norms()}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ.setdefault("MASTER_PORT", str(23000 + os.getpid() % 9000))
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    mp.spawn(run, args=(n,), nprocs=n)
