import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Blobs(Dataset):
    def __init__(self, n=128, size=16):
        g = torch.Generator().manual_seed(2)
        cx = torch.randint(4, size - 4, (n, 2), generator=g)
        yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
        d = (yy[None] - cx[:, :1, None]) ** 2 + (xx[None] - cx[:, 1:, None]) ** 2
        self.mask = (d < 9).float()
        self.img = self.mask[:, None] + 0.5 * torch.randn(n, 1, size, size, generator=g)

    def __len__(self):
        return len(self.img)

    def __getitem__(self, i):
        return self.img[i], self.mask[i]


def conv_block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(2, o), nn.ReLU())


class Backbone(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.stem = conv_block(1, c)
        self.down1 = conv_block(c, 2 * c)
        self.down2 = conv_block(2 * c, 4 * c)
        self.norms = nn.ModuleList(nn.GroupNorm(2, k) for k in (c, 2 * c, 4 * c))

    def forward(self, x):
        outs = []
        x = self.stem(x)
        outs.append(self.norms[0](x))
        x = self.down1(F.max_pool2d(x, 2))
        outs.append(self.norms[1](x))
        x = self.down2(F.max_pool2d(x, 2))
        outs.append(self.norms[2](x))
        return outs


class Neck(nn.Module):
    """Top-down path with a head on the two finest levels."""

    def __init__(self, c=8):
        super().__init__()
        self.lat = nn.ModuleList(nn.Conv2d(k, c, 1) for k in (c, 2 * c, 4 * c))
        self.fuse = conv_block(c, c)
        self.head = nn.Conv2d(c, 1, 1)

    def forward(self, feats):
        fine, mid, coarse = [l(f) for l, f in zip(self.lat, feats)]
        mid = F.interpolate(mid, scale_factor=2)
        return self.head(self.fuse(fine + mid)).squeeze(1)


class SegModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = Backbone()
        self.neck = Neck()

    def forward(self, x):
        return self.neck(self.backbone(x))


def dice(logits, mask):
    p = logits.sigmoid()
    return 1 - (2 * (p * mask).sum() + 1) / (p.sum() + mask.sum() + 1)


def main(args):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DDP(SegModel())
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    data = Blobs()
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=args.batch_size, sampler=sampler)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for img, mask in loader:
            logits = model(img)
            loss = F.binary_cross_entropy_with_logits(logits, mask) + dice(logits, mask)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if dist.get_rank() == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--batch-size", type=int, default=8)
    p.add_argument("--lr", type=float, default=2e-3)
    main(p.parse_args())
