"""Two-view contrastive pretraining (InfoNCE with negatives from all workers)."""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.nn.functional import all_gather as all_gather_autograd
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class TwoViews(Dataset):
    def __init__(self, n=512, dim=32, noise=0.4):
        g = torch.Generator().manual_seed(13)
        centers = torch.randn(n // 4, dim, generator=g)
        self.base = centers.repeat(4, 1) + 0.3 * torch.randn(n, dim, generator=g)
        self.noise = noise

    def __len__(self):
        return len(self.base)

    def __getitem__(self, i):
        x = self.base[i]
        return x + self.noise * torch.randn_like(x), x + self.noise * torch.randn_like(x)


class Encoder(nn.Module):
    def __init__(self, dim=32, proj=16):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.proj = nn.Linear(64, proj)

    def forward(self, a, b):
        z = F.normalize(self.proj(self.trunk(torch.cat([a, b]))), dim=-1)
        return z.chunk(2)


def gather_embeddings(z):
    return torch.cat(all_gather_autograd(z))


def info_nce(q, k, temperature):
    keys = gather_embeddings(k)
    logits = q @ keys.t() / temperature
    target = torch.arange(len(q)) + dist.get_rank() * len(q)
    return F.cross_entropy(logits, target)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--bs", type=int, default=32)
    ap.add_argument("--lr", type=float, default=0.1)
    ap.add_argument("--temperature", type=float, default=0.2)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(100 + rank)
    ds = TwoViews()
    sampler = DistributedSampler(ds)
    loader = DataLoader(ds, args.bs, sampler=sampler, drop_last=True)
    model = DDP(Encoder())
    opt = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        log = 0.0
        for a, b in loader:
            q, k = model(a, b)
            loss = info_nce(q, k, args.temperature)
            opt.zero_grad()
            loss.backward()
            opt.step()
            log += loss.item()
        if rank == 0:
            print(f"[{epoch}] nce {log / len(loader):.4f}")
    if rank == 0:
        torch.save(model.module.trunk.state_dict(), "trunk.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
