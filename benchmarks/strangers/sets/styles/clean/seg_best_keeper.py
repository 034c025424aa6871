"""Binary segmentation of blobs with a small U-Net (python seg_best_keeper.py starts two workers)."""
import argparse
import heapq
import os
import shutil
import socket
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def blobs(n, seed, size=24):
    g = torch.Generator().manual_seed(seed)
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    cx, cy = torch.rand(2, n, 1, 1, generator=g) * size
    r = 3 + 5 * torch.rand(n, 1, 1, generator=g)
    mask = (((xx - cx) ** 2 + (yy - cy) ** 2) < r ** 2).float()
    image = mask.unsqueeze(1) + 0.9 * torch.randn(n, 1, size, size, generator=g)
    return TensorDataset(image, mask.unsqueeze(1))


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(4, o), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.d1, self.d2, self.mid = block(1, c), block(c, 2 * c), block(2 * c, 2 * c)
        self.u2, self.u1 = block(4 * c, c), block(2 * c, c)
        self.head = nn.Conv2d(c, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        m = self.mid(F.max_pool2d(b, 2))
        h = self.u2(torch.cat([F.interpolate(m, scale_factor=2), b], 1))
        h = self.u1(torch.cat([F.interpolate(h, scale_factor=2), a], 1))
        return self.head(h)


def dice_loss(logits, target):
    p = logits.sigmoid()
    inter = (p * target).sum((1, 2, 3))
    return (1 - (2 * inter + 1) / (p.sum((1, 2, 3)) + target.sum((1, 2, 3)) + 1)).mean()


class CheckpointKeeper:
    """Keeps the k best weights on disk."""

    def __init__(self, root, rank, k=2):
        self.root, self.rank, self.k = root, rank, k
        self.heap = []

    def qualifies(self, score):
        return len(self.heap) < self.k or score > self.heap[0][0]

    def store(self, module, score, epoch):
        path = os.path.join(self.root, f"epoch{epoch:03d}.pt")
        heapq.heappush(self.heap, (score, path))
        stale = heapq.heappop(self.heap)[1] if len(self.heap) > self.k else None
        if self.rank == 0:
            torch.save(module.state_dict(), path)
            if stale:
                os.remove(stale)
        dist.barrier()
        return path


class Trainer:
    def __init__(self, args, rank, world, root):
        self.args, self.rank, self.world = args, rank, world
        torch.manual_seed(0)
        self.net = UNet()
        self.model = DDP(self.net)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=args.lr)
        train, val = blobs(96, seed=1), blobs(12, seed=2)
        self.sampler = DistributedSampler(train, world, rank)
        self.train_loader = DataLoader(train, args.batch_size, sampler=self.sampler, drop_last=True)
        self.val_loader = DataLoader(val, 4, sampler=DistributedSampler(val, world, rank, shuffle=False))
        self.keeper = CheckpointKeeper(root, rank)

    def train_epoch(self, epoch):
        self.model.train()
        self.sampler.set_epoch(epoch)
        for x, y in self.train_loader:
            logits = self.model(x)
            loss = dice_loss(logits, y) + F.binary_cross_entropy_with_logits(logits, y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return loss.item()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        inter = union = 0.0
        for x, y in self.val_loader:
            hard = (self.net(x) > 0).float()
            inter += (hard * y).sum()
            union += hard.sum() + y.sum()
        totals = torch.stack([inter, union])
        dist.all_reduce(totals)
        return (2 * totals[0] / totals[1]).item()

    def fit(self):
        for epoch in range(self.args.epochs):
            loss = self.train_epoch(epoch)
            dice = self.validate()
            if self.keeper.qualifies(dice):
                self.keeper.store(self.net, dice, epoch)
            if self.rank == 0:
                print(f"epoch {epoch} loss {loss:.4f} dice {dice:.4f} kept {len(self.keeper.heap)}", flush=True)


def worker(rank, world, port, root, args):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    Trainer(args, rank, world, root).fit()
    dist.barrier()
    dist.destroy_process_group()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=12)
    p.add_argument("--batch-size", type=int, default=8)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--workers", type=int, default=2)
    args = p.parse_args()
    root = tempfile.mkdtemp(prefix="blobseg_")
    try:
        mp.spawn(worker, args=(args.workers, free_port(), root, args), nprocs=args.workers)
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
