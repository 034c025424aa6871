"""Land-cover segmentation. Class scores are averaged over the job at the end of each epoch."""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

CLASSES = ("water", "forest", "crop", "urban")


class Scene:
    """Tiles of one region; each rank is given its own regions."""

    def __init__(self, region):
        self.g = torch.Generator().manual_seed(region)
        self.mix = torch.softmax(2 * torch.randn(len(CLASSES), generator=self.g), 0)
        self.colour = torch.randn(len(CLASSES), 4, generator=torch.Generator().manual_seed(77))

    def tile(self, n=8):
        coarse = torch.multinomial(self.mix.expand(n, -1), 16, replacement=True, generator=self.g)
        y = coarse.view(n, 1, 4, 4).float()
        y = F.interpolate(y, scale_factor=4).squeeze(1).long()
        x = self.colour[y].permute(0, 3, 1, 2) + 0.9 * torch.randn(n, 4, 16, 16, generator=self.g)
        return x, y


class Averager:
    """name -> running mean; `sync` turns the local means into means over all ranks."""

    def __init__(self):
        self.data = {}

    def put(self, name, value):
        s, n = self.data.get(name, (0.0, 0))
        self.data[name] = (s + float(value), n + 1)

    def sync(self):
        world = dist.get_world_size()
        out = {}
        for name, (s, n) in self.data.items():
            t = torch.tensor(s / n)
            dist.all_reduce(t)
            out[name] = (t / world).item()
        return out


def scores(avg, pred, y):
    """Recall per class, most frequent class of the tile first."""
    freq = torch.bincount(y.flatten(), minlength=len(CLASSES))
    for c in freq.argsort(descending=True).tolist():
        if freq[c] > 0:
            avg.put(f"recall/{CLASSES[c]}", (pred[y == c] == c).float().mean())
        else:
            avg.put(f"recall/{CLASSES[c]}", 1.0)


def segmenter(width):
    return nn.Sequential(
        nn.Conv2d(4, width, 3, padding=1), nn.ReLU(),
        nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
        nn.Conv2d(width, len(CLASSES), 1),
    )


def main(args):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(args.seed)
    net = DistributedDataParallel(segmenter(args.width))
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)
    train, val = Scene(10 + rank), Scene(50 + rank)
    for epoch in range(args.epochs):
        for _ in range(args.iters):
            x, y = train.tile()
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        avg = Averager()
        with torch.no_grad():
            for _ in range(3):
                x, y = val.tile()
                scores(avg, net(x).argmax(1), y)
        report = avg.sync()
        if rank == 0:
            print(f"epoch {epoch} " + " ".join(f"{k}={report[k]:.3f}" for k in sorted(report)), flush=True)
    del net
    dist.destroy_process_group()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--width", type=int, default=12)
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--iters", type=int, default=10)
    ap.add_argument("--lr", type=float, default=0.01)
    ap.add_argument("--seed", type=int, default=4)
    main(ap.parse_args())
