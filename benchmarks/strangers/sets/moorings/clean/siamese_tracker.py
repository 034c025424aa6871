"""Siamese tracker head: exemplar and search crops share one backbone, trained with a logistic loss on the response map."""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


def get_args():
    p = argparse.ArgumentParser("siamese tracker")
    p.add_argument("--iters", type=int, default=20)
    p.add_argument("--batch", type=int, default=6)
    p.add_argument("--lr", type=float, default=5e-3)
    p.add_argument("--seed", type=int, default=3)
    return p.parse_args()


class Backbone(nn.Module):
    """Shared layers, then an adjust layer for each of the two roles; rgb_stem is only there for colour sequences."""

    def __init__(self, width=12):
        super().__init__()
        self.gray_stem = nn.Conv2d(1, width, 3, padding=1)
        self.rgb_stem = nn.Conv2d(3, width, 3, padding=1)
        self.body = nn.Sequential(nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2))
        self.adjust = nn.ModuleDict({"exemplar": nn.Conv2d(width, width, 1), "search": nn.Conv2d(width, width, 1)})

    def features(self, img, role):
        stem = self.gray_stem if img.shape[1] == 1 else self.rgb_stem
        return self.adjust[role](self.body(stem(img)))

    def forward(self, exemplar, search):
        return self.features(exemplar, "exemplar"), self.features(search, "search")


def sample_pairs(n, gen):
    """A blob, and a second frame of the same blob moved a little."""
    yy, xx = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    out = []
    for _ in range(n):
        cy, cx = (torch.rand(2, generator=gen) * 6 + 5).tolist()
        dy, dx = (torch.rand(2, generator=gen) * 4 - 2).tolist()
        a = torch.exp(-((yy - cy) ** 2 + (xx - cx) ** 2) / 6)
        b = torch.exp(-((yy - cy - dy) ** 2 + (xx - cx - dx) ** 2) / 6)
        out.append(torch.stack([a, b]))
    pairs = torch.stack(out) + 0.05 * torch.randn(n, 2, 16, 16, generator=gen)
    return pairs[:, :1], pairs[:, 1:]


def response(z, x):
    b, c, h, w = x.shape
    out = F.conv2d(x.reshape(1, b * c, h, w), z[..., 2:-2, 2:-2].reshape(b, c, h - 4, w - 4), groups=b)
    return out.squeeze(0).mean((1, 2))


def main():
    args = get_args()
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo")
    torch.manual_seed(args.seed)
    net = DistributedDataParallel(Backbone(), find_unused_parameters=True)
    opt = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9)
    gen = torch.Generator().manual_seed(1000 + rank)
    for it in range(args.iters):
        exemplar, search = sample_pairs(args.batch, gen)
        z, x = net(exemplar, search)
        pos = response(z, x)
        neg = response(z.roll(1, 0), x)
        loss = F.softplus(-pos / 10).mean() + F.softplus(neg / 10).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if it % 5 == 0 and rank == 0:
            print(f"it {it:3d} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
