import argparse
import os
import shutil

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from ema import Ema
from state import Snapshot


class Discs(Dataset):
    def __init__(self, n, train, rank=0):
        self.n, self.train = n, train
        # flips and noise should not be the same on all ranks
        self.aug = torch.Generator().manual_seed(31 + rank)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i if self.train else 10_000 + i)
        yy, xx = torch.meshgrid(torch.arange(24.0), torch.arange(24.0), indexing="ij")
        cx, cy, r = (torch.rand(3, generator=g) * torch.tensor([14.0, 14.0, 4.0]) + torch.tensor([5.0, 5.0, 2.0]))
        mask = ((xx - cx) ** 2 + (yy - cy) ** 2 < r ** 2).float()[None]
        img = mask + 0.5 * torch.randn(mask.shape, generator=g)
        if self.train and torch.rand((), generator=self.aug) < 0.5:
            img, mask = img.flip(-1), mask.flip(-1)
        return img, mask


def net():
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(),
        nn.Conv2d(12, 12, 3, padding=2, dilation=2), nn.ReLU(), nn.Conv2d(12, 1, 1),
    )


@torch.no_grad()
def dice(model, loader):
    t = torch.zeros(2)
    for img, mask in loader:
        p = (model(img) > 0).float()
        t += torch.stack([2 * (p * mask).sum(), p.sum() + mask.sum()])
    dist.all_reduce(t)
    return (t[0] / t[1]).item()


def session(args, stop_after):
    rank = dist.get_rank()
    torch.manual_seed(0)
    train, val = Discs(384, True, rank), Discs(64, False)
    sampler = DistributedSampler(train, seed=8)
    loader = DataLoader(train, 16, sampler=sampler)
    val_loader = DataLoader(val, 16, sampler=DistributedSampler(val, shuffle=False))
    model = nn.parallel.DistributedDataParallel(net())
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs)
    ema = Ema(model.module)
    snap = Snapshot(args.out, model=model.module, opt=opt, sched=sched, ema=ema)
    for epoch in range(snap.load(), args.epochs):
        sampler.set_epoch(epoch)
        for img, mask in loader:
            loss = F.binary_cross_entropy_with_logits(model(img), mask)
            opt.zero_grad()
            loss.backward()
            opt.step()
            ema.update(model.module)
        sched.step()
        score = dice(ema.shadow, val_loader)
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.3f} dice {score:.3f} lr {sched.get_last_lr()[0]:.1e}", flush=True)
        snap.save(epoch)
        if epoch + 1 == stop_after:
            return


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=6)
    ap.add_argument("--lr", type=float, default=5e-3)
    ap.add_argument("--out", default="seg_resume_out")
    args = ap.parse_args()
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        shutil.rmtree(args.out, ignore_errors=True)
    dist.barrier()
    session(args, stop_after=3)
    session(args, stop_after=None)
    dist.destroy_process_group()
