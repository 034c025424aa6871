"""Semantic segmentation on small synthetic street scenes, with a per-class IoU report.

    torchrun --nproc_per_node=4 street_scene_eval.py
"""
import argparse
from collections import defaultdict

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

CLASSES = ("road", "building", "person", "car", "tram")


class Streets(Dataset):
    def __init__(self, count, seed):
        self.count, self.seed = count, seed

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 1000 + i)
        label = torch.zeros(16, 16, dtype=torch.long)
        label[:8] = 1
        for cls in (2, 3):
            y, x = torch.randint(0, 12, (2,), generator=g).tolist()
            label[y:y + 4, x:x + 4] = cls
        if i % 11 == 5:                       # trams are rare in this city
            label[10:14, 2:12] = 4
        image = F.one_hot(label, len(CLASSES)).permute(2, 0, 1).float()
        return image + 0.7 * torch.randn(image.shape, generator=g), label


class SegNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(len(CLASSES), width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
        )
        self.head = nn.Conv2d(width, len(CLASSES), 1)

    def forward(self, x):
        return self.head(self.body(x))


class IoUMeter:
    """Collects intersection / union by class name and merges them over the workers."""

    def __init__(self):
        self.counts = defaultdict(lambda: torch.zeros(2))

    def add(self, name, inter, union):
        self.counts[name] += torch.tensor([float(inter), float(union)])

    def merged(self):
        result = {}
        for name in sorted(self.counts):
            pair = self.counts[name].clone()
            dist.all_reduce(pair)
            result[name] = (pair[0] / pair[1].clamp(min=1)).item()
        return result


@torch.no_grad()
def evaluate(net, loader):
    net.eval()
    meter = IoUMeter()
    for image, label in loader:
        pred = net.module(image).argmax(1)
        for idx, name in enumerate(CLASSES):
            truth = label == idx
            if not truth.any():
                continue
            guess = pred == idx
            meter.add(name, (truth & guess).sum(), (truth | guess).sum())
    net.train()
    return meter.merged()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--lr", type=float, default=0.05)
    args = p.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(3)
    net = DDP(SegNet())
    train, val = Streets(96, seed=1), Streets(24, seed=2)
    sampler = DistributedSampler(train, seed=3)
    train_loader = DataLoader(train, batch_size=8, sampler=sampler)
    val_loader = DataLoader(val, batch_size=3, sampler=DistributedSampler(val, shuffle=False))
    opt = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for image, label in train_loader:
            opt.zero_grad()
            loss = F.cross_entropy(net(image), label)
            loss.backward()
            opt.step()
        scores = evaluate(net, val_loader)
        if dist.get_rank() == 0:
            line = " ".join(f"{k}={v:.3f}" for k, v in scores.items())
            print(f"epoch {epoch} loss {loss.item():.3f} IoU {line}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
