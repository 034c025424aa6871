import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from data import TileSet
from losses import GlandContrast


class TinySeg(nn.Module):
    def __init__(self, classes=3, width=8):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU(),
                                  nn.Conv2d(width, width, 3, padding=1), nn.ReLU())
        self.cls = nn.Conv2d(width, classes, 1)
        self.proj = nn.Conv2d(width, 6, 1)

    def forward(self, x):
        h = self.body(x)
        return self.cls(h), self.proj(h)


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--bs", type=int, default=3)
    p.add_argument("--lr", type=float, default=0.05)
    return p.parse_args()


def main():
    args = parse()
    dist.init_process_group("gloo")
    torch.manual_seed(11)
    tiles = TileSet()
    sampler = DistributedSampler(tiles, shuffle=True, seed=1)
    loader = DataLoader(tiles, batch_size=args.bs, sampler=sampler)
    net = DDP(TinySeg())
    contrast = GlandContrast()
    opt = torch.optim.SGD(net.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            logits, emb = net(x)
            loss = F.cross_entropy(logits, y) + contrast(emb, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if dist.get_rank() == 0:
            print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
