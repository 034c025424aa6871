"""Face embedding toy: backbone + additive angular margin, multi-process on one host."""
import argparse
import math
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class ArcMargin(nn.Module):
    def __init__(self, dim, n_ids, s=16.0, m=0.2):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_ids, dim) * 0.05)
        self.s, self.cos_m, self.sin_m = s, math.cos(m), math.sin(m)

    def forward(self, emb, label):
        cosine = F.linear(F.normalize(emb), F.normalize(self.weight))
        sine = (1.0 - cosine.pow(2)).clamp(1e-6, 1).sqrt()
        phi = cosine * self.cos_m - sine * self.sin_m
        onehot = F.one_hot(label, self.weight.size(0)).bool()
        return F.cross_entropy(self.s * torch.where(onehot, phi, cosine), label)


class Backbone(nn.Module):
    def __init__(self, d_in=40, d_out=24):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d_in, 64), nn.PReLU(), nn.Linear(64, d_out))

    def forward(self, x):
        return self.body(x)


def faces(n=640, n_ids=16):
    g = torch.Generator().manual_seed(2)
    ids = torch.randint(0, n_ids, (n,), generator=g)
    return TensorDataset(torch.randn(n_ids, 40, generator=g)[ids] + 0.7 * torch.randn(n, 40, generator=g), ids)


def worker(rank, world_size, port, args):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    torch.manual_seed(args.seed)
    ds = faces()
    sampler = DistributedSampler(ds, num_replicas=world_size, rank=rank)
    loader = DataLoader(ds, args.batch_size, sampler=sampler, drop_last=True)

    backbone = DDP(Backbone())
    criterion = ArcMargin(24, 16)
    optimizer = torch.optim.SGD(
        [{"params": backbone.parameters()}, {"params": criterion.parameters()}], lr=args.lr, momentum=0.9)

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for it, (x, y) in enumerate(loader):
            loss = criterion(backbone(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if rank == 0 and it % 10 == 0:
                print(f"epoch {epoch} it {it} loss {loss.item():.4f}", flush=True)
    if rank == 0:
        torch.save({"backbone": backbone.state_dict(), "head": criterion.state_dict()}, "face.pt")
    dist.barrier()
    dist.destroy_process_group()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--nprocs", type=int, default=2)
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--batch-size", type=int, default=20)
    ap.add_argument("--lr", type=float, default=0.05)
    ap.add_argument("--seed", type=int, default=0)
    a = ap.parse_args()
    mp.spawn(worker, args=(a.nprocs, free_port(), a), nprocs=a.nprocs)
