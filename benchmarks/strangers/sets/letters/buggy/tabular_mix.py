"""Tabular net with one embedding per categorical column (credit scoring, made up)."""
import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CARDS = [3, 5, 7, 11, 13, 4, 9, 6, 8, 21, 17, 5, 12, 3, 30, 25]
NUMERIC = 10


def make_table(n=960):
    g = torch.Generator().manual_seed(88)
    cat = torch.stack([torch.randint(0, c, (n,), generator=g) for c in CARDS], 1)
    num = torch.randn(n, NUMERIC, generator=g)
    odd = (cat[:, 0] == 1).float() + (cat[:, 4] > 6).float() - num[:, 0] * num[:, 1]
    return TensorDataset(cat, num, (odd > 0.5).float())


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.lin1 = nn.Linear(d, d)
        self.lin2 = nn.Linear(d, d)

    def forward(self, x):
        return x + self.lin2(torch.relu(self.lin1(self.norm(x))))


class TabNet(nn.Module):
    def __init__(self, d=32, depth=10):
        super().__init__()
        self.emb = nn.ModuleList(nn.Embedding(c, 4) for c in CARDS)
        self.inp = nn.Linear(4 * len(CARDS) + NUMERIC, d)
        self.blocks = nn.Sequential(*(Block(d) for _ in range(depth)))
        self.out = nn.Linear(d, 1)

    def forward(self, cat, num):
        e = [emb(cat[:, i]) for i, emb in enumerate(self.emb)]
        return self.out(self.blocks(self.inp(torch.cat(e + [num], 1)))).squeeze(1)


def average_gradients(model):
    world = dist.get_world_size()
    for p in model.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad, op=dist.ReduceOp.SUM)
            p.grad /= world


def work(rank, world, port):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", port
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(0)
    table = make_table()
    sampler = DistributedSampler(table, world, rank)
    loader = DataLoader(table, 32, sampler=sampler)
    net = DDP(TabNet())
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
    lossf = nn.BCEWithLogitsLoss()
    for epoch in range(2):
        sampler.set_epoch(epoch)
        begin = time.perf_counter()
        for cat, num, y in loader:
            opt.zero_grad()
            loss = lossf(net(cat, num), y)
            loss.backward()
            average_gradients(net)
            opt.step()
        if rank == 0:
            ms = 1000 * (time.perf_counter() - begin) / len(loader)
            print(f"epoch {epoch} bce {loss.item():.4f}  {ms:.1f} ms/step", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, args=(2, str(21000 + os.getpid() % 20000)), nprocs=2)
