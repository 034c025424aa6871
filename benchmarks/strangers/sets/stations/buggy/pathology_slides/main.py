"""Tile classifier for whole slide images.

    torchrun --nproc_per_node 2 main.py --epochs 3
"""
import argparse
import copy
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from scores import TissueScore
from tiles import CLASSES, TileSet


def loaders(args):
    train = TileSet(1200, seed=10)
    held = TileSet(800, seed=11)
    s_train = DistributedSampler(train, shuffle=True, seed=5)
    s_held = DistributedSampler(held, shuffle=False)
    return (
        DataLoader(train, args.batch, sampler=s_train),
        DataLoader(held, args.batch, sampler=s_held),
    )


class Progress:
    def __init__(self, every, rank):
        self.every, self.rank = every, rank

    def __call__(self, epoch, i, score):
        if (i + 1) % self.every == 0:
            f1 = score.macro_f1()
            if self.rank == 0:
                print(f"  epoch {epoch} tile batch {i + 1:3d}: running F1 {f1:.4f}", flush=True)


def evaluate(model, loader, score, progress, epoch):
    model.eval()
    score.reset()
    with torch.no_grad():
        for i, (x, y) in enumerate(loader):
            score.update(model.module(x), y)
            progress(epoch, i, score)
    model.train()
    return score.macro_f1()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--batch", type=int, default=40)
    ap.add_argument("--log-every", type=int, default=4)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    torch.manual_seed(0)

    net = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, len(CLASSES)))
    model = DDP(net)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    train, held = loaders(args)
    score = TissueScore(len(CLASSES))
    progress = Progress(args.log_every, rank)

    best, kept = -1.0, None
    for epoch in range(args.epochs):
        train.sampler.set_epoch(epoch)
        for x, y in train:
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        f1 = evaluate(model, held, score, progress, epoch)
        if f1 > best:
            best, kept = f1, copy.deepcopy(net.state_dict())
        if rank == 0:
            print(f"epoch {epoch} macro F1 {f1:.4f} best {best:.4f}", flush=True)

    net.load_state_dict(kept)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
