"""Signature verification, siamese embedding with a contrastive loss."""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class SignaturePairs(Dataset):
    def __init__(self, writers=20, pairs=320, noise=0.4, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.style = torch.randn(writers, 1, 20, 40, generator=g)
        self.a = torch.randint(writers, (pairs,), generator=g)
        self.same = torch.rand(pairs, generator=g) < 0.5
        other = (self.a + torch.randint(1, writers, (pairs,), generator=g)) % writers
        self.b = torch.where(self.same, self.a, other)
        self.noise = noise

    def __len__(self):
        return len(self.a)

    def __getitem__(self, i):
        def draw(w):
            return self.style[w] + self.noise * torch.randn(1, 20, 40)
        return draw(self.a[i]), draw(self.b[i]), self.same[i].float()


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU())


class Embedder(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.ink = block(1, 12)
        self.features = block(12, 24)
        self.head = nn.Linear(24 * 5 * 10, dim)
        self.register_buffer("threshold", torch.tensor(0.5))

    def forward(self, x):
        return F.normalize(self.head(self.features(self.ink(x)).flatten(1)), dim=-1)


def contrastive(u, v, same, margin=1.0):
    d = (u - v).norm(dim=1)
    return (same * d.pow(2) + (1 - same) * F.relu(margin - d).pow(2)).mean()


@torch.inference_mode()
def calibrate(net, loader):
    """Half way between the mean distance of the genuine and of the forged pairs; kept with the weights."""
    net.eval()
    sums = torch.zeros(4)
    for left, right, same in loader:
        u, v = net.module(torch.cat([left, right])).chunk(2)
        d = (u - v).norm(dim=1)
        sums += torch.stack([(d * same).sum(), same.sum(), (d * (1 - same)).sum(), (1 - same).sum()])
    dist.all_reduce(sums)
    net.module.threshold = (sums[0] / sums[1] + sums[2] / sums[3]) / 2


def train(opt):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(opt.seed + rank)
    data = SignaturePairs(pairs=opt.pairs)
    sampler = DistributedSampler(data, world, rank, drop_last=True)
    loader = DataLoader(data, batch_size=opt.batch, sampler=sampler, drop_last=True)
    net = DDP(Embedder(opt.dim))
    optim = torch.optim.AdamW(net.parameters(), lr=opt.lr, weight_decay=1e-4)
    sched = OneCycleLR(optim, opt.lr, total_steps=opt.epochs * len(loader))
    for epoch in range(opt.epochs):
        sampler.set_epoch(epoch)
        net.train()
        total = 0.0
        for left, right, same in loader:
            u, v = net(torch.cat([left, right])).chunk(2)
            loss = contrastive(u, v, same)
            optim.zero_grad(set_to_none=True)
            loss.backward()
            optim.step()
            sched.step()
            total += loss.item()
        calibrate(net, loader)
        if rank == 0:
            print(f"epoch {epoch + 1}/{opt.epochs} loss {total / len(loader):.4f} threshold {net.module.threshold.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--batch", type=int, default=16)
    ap.add_argument("--pairs", type=int, default=320)
    ap.add_argument("--dim", type=int, default=32)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--seed", type=int, default=7)
    train(ap.parse_args())
