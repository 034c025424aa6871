"""Tumour patches: training on patches, validation slide by slide."""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def conv_bn(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class PatchNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(conv_bn(3, 8), nn.MaxPool2d(2), conv_bn(8, 16), nn.AdaptiveAvgPool2d(1))
        self.fc = nn.Linear(16, 2)

    def forward(self, x):
        return self.fc(self.features(x).flatten(1))


def make_patches(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 2, (n,), generator=g)
    x = torch.randn(n, 3, 12, 12, generator=g)
    x[y == 1, :, 4:8, 4:8] += 1.0
    return x, y


def slide_library():
    """Validation slides; the number of patches follows the area of the tissue."""
    sizes = [12, 40, 20, 64, 8, 52]
    return {f"slide_{k:02d}": make_patches(n, 100 + k) for k, n in enumerate(sizes)}


def is_main():
    return dist.get_rank() == 0


class Meter:
    def __init__(self):
        self.total = torch.zeros(2)

    def update(self, logits, y):
        self.total += torch.tensor([(logits.argmax(1) == y).sum().item(), len(y)])

    def synchronize(self):
        dist.all_reduce(self.total)
        return (self.total[0] / self.total[1]).item()


def validate(model, slides, batch_size):
    model.eval()
    meter = Meter()
    names = sorted(slides)[dist.get_rank()::dist.get_world_size()]
    for name in names:
        x, y = slides[name]
        for xb, yb in zip(x.split(batch_size), y.split(batch_size)):
            meter.update(model(xb), yb)
    model.train()
    return meter.synchronize()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--batch-size", type=int, default=16)
    ap.add_argument("--lr", type=float, default=0.05)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    train = TensorDataset(*make_patches(160, 7))
    sampler = DistributedSampler(train)
    loader = DataLoader(train, args.batch_size, sampler=sampler, drop_last=True)
    model = DDP(PatchNet())
    opt = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    slides = slide_library()
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        acc = validate(model, slides, args.batch_size)
        if is_main():
            print(f"epoch {epoch} loss {loss.item():.3f} val acc {acc:.3f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
