"""Toy organ segmentation.  torchrun --nproc_per_node=2 seg_organs.py"""
import contextlib

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, DistributedSampler

CLASSES = ("background", "liver", "spleen", "adrenal")


class Slices(Dataset):
    """Patients come one after the other; small organs show up in the later ones mostly."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.zeros(n, 20, 20, dtype=torch.long)
        for i in range(n):
            r = int(torch.randint(0, 8, (1,), generator=g))
            self.y[i, r:r + 9, 2:12] = 1
            self.y[i, 12:16, 12:12 + 1 + r // 2] = 2
            if i % 2 == 1 and i % 6 != 5:
                self.y[i, 4:6 + r // 3, 15:18] = 3
        level = torch.tensor([0.0, 0.8, 1.4, 2.2])
        self.x = (level[self.y] + 0.45 * torch.randn(self.y.shape, generator=g)).unsqueeze(1)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def unet(width=10):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1), nn.ReLU(),
        nn.Conv2d(width, width, 3, padding=2, dilation=2), nn.ReLU(),
        nn.Conv2d(width, width, 3, padding=4, dilation=4), nn.ReLU(),
        nn.Conv2d(width, len(CLASSES), 1))


@contextlib.contextmanager
def evaluating(model):
    model.eval()
    with torch.no_grad():
        yield model.module
    model.train()


class IoU:
    def __init__(self, k):
        self.inter = torch.zeros(k, dtype=torch.float64)
        self.union = torch.zeros(k, dtype=torch.float64)

    def update(self, pred, y):
        for c in range(len(self.inter)):
            a, b = pred == c, y == c
            self.inter[c] += (a & b).sum()
            self.union[c] += (a | b).sum()

    def compute(self):
        both = torch.stack([self.inter, self.union])
        dist.all_reduce(both)
        return both[0] / both[1].clamp(min=1)


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    train, val = Slices(64, 1), Slices(26, 2)
    sampler = DistributedSampler(train)
    loader = DataLoader(train, 8, sampler=sampler)
    val_loader = DataLoader(val, 8, sampler=DistributedSampler(val, shuffle=False))
    net = nn.parallel.DistributedDataParallel(unet())
    opt = torch.optim.Adam(net.parameters(), 1e-2)
    weight = torch.tensor([0.4, 1.0, 3.0, 4.0])
    for epoch in range(12):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = F.cross_entropy(net(x), y, weight=weight)
            opt.zero_grad()
            loss.backward()
            opt.step()
    meter = IoU(len(CLASSES))
    with evaluating(net) as model:
        for x, y in val_loader:
            meter.update(model(x).argmax(1), y)
    result = meter.compute()
    if dist.get_rank() == 0:
        for name, v in zip(CLASSES, result.tolist()):
            print(f"{name:11s} {v:.4f}")
        print(f"mIoU        {result.mean().item():.4f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
