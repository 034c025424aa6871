#!/usr/bin/env python
import argparse
import os
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.distributed as dist
import torch.utils.data as data
from torch.nn.parallel import DistributedDataParallel as DDP

parser = argparse.ArgumentParser(description='PyTorch Part Segmentation')
parser.add_argument('--batch-size', default=4, type=int, help='shapes per process')
parser.add_argument('--epochs', default=4, type=int)
parser.add_argument('--lr', default=5e-3, type=float)
parser.add_argument('--shards', default=8, type=int)
parser.add_argument('--points', default=96, type=int)
parser.add_argument('--seed', default=1, type=int)
parser.add_argument('--dist-backend', default='gloo', type=str)
parser.add_argument('--local_rank', default=int(os.environ.get('LOCAL_RANK', 0)), type=int, help='filled in by the launcher')


def make_shard(no, n_points, shapes=12):
    """Stand-in for part_XX.npz: each file holds one family of objects."""
    rng = np.random.RandomState(500 + no)
    axis = rng.randn(3)
    axis /= np.linalg.norm(axis)
    out = []
    for _ in range(shapes):
        pts = rng.randn(n_points, 3) * (1 + 0.2 * rng.rand(3))
        height = pts @ axis
        part = np.digitize(height, [-0.5, 0.5])
        out.append((pts.astype('float32'), part.astype('int64'), no))
    return out


class PartDataset(data.Dataset):
    def __init__(self, names, n_points):
        self.items = []
        for name in names:
            self.items += make_shard(int(name[5:7]), n_points)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        pts, part, family = self.items[i]
        return torch.from_numpy(pts), torch.from_numpy(part), family


class PointSeg(nn.Module):
    def __init__(self, families, parts=3, w=48):
        super().__init__()
        self.emb = nn.Embedding(families, 8)
        self.local = nn.Sequential(nn.Linear(3 + 8, w), nn.ReLU(), nn.Linear(w, w), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(2 * w, w), nn.ReLU(), nn.Linear(w, parts))

    def forward(self, pts, family):
        e = self.emb(family)[:, None].expand(-1, pts.shape[1], -1)
        h = self.local(torch.cat([pts, e], -1))
        g = h.max(1, keepdim=True)[0].expand_as(h)
        return self.head(torch.cat([h, g], -1))


def accuracy(net, args):
    """All families, new shapes."""
    right, total = 0, 0
    with torch.no_grad():
        for no in range(args.shards):
            for pts, part, family in make_shard(no, args.points, shapes=16)[12:]:
                out = net(torch.from_numpy(pts)[None], torch.tensor([family]))
                right += (out.argmax(-1)[0] == torch.from_numpy(part)).sum().item()
                total += len(part)
    return right / total


def main():
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group(args.dist_backend, init_method='env://')
    args.rank, args.world_size = dist.get_rank(), dist.get_world_size()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    names = ['part_%02d.npz' % i for i in range(args.shards)]
    mine = names[args.local_rank::args.world_size]
    train_set = PartDataset(mine, args.points)
    train_loader = data.DataLoader(train_set, batch_size=args.batch_size, shuffle=True, drop_last=True)

    net = DDP(PointSeg(args.shards))
    optimizer = torch.optim.Adam(net.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        net.train()
        for pts, part, family in train_loader:
            loss = F.cross_entropy(net(pts, family).flatten(0, 1), part.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        acc = accuracy(net.module, args)
        if args.rank == 0:
            print('epoch %d: loss %.3f  test acc %.3f' % (epoch, loss.item(), acc), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
