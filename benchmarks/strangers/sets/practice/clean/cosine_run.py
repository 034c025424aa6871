import argparse
import math

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset, DistributedSampler

parser = argparse.ArgumentParser(description="small image classifier")
parser.add_argument("--epochs", default=4, type=int)
parser.add_argument("-b", "--batch-size", default=16, type=int, help="per process")
parser.add_argument("--lr", default=0.05, type=float)
parser.add_argument("--warmup-epochs", default=1, type=int)
parser.add_argument("--min-lr", default=1e-5, type=float)


class CosineWithWarmup:
    def __init__(self, opt, base, floor, warmup, total):
        self.opt, self.base, self.floor = opt, base, floor
        self.warmup, self.total = warmup, total
        self.t = 0
        self.apply()

    def value(self):
        if self.t < self.warmup:
            return self.base * (self.t + 1) / self.warmup
        p = min(1.0, (self.t - self.warmup) / max(1, self.total - self.warmup))
        return self.floor + 0.5 * (self.base - self.floor) * (1 + math.cos(math.pi * p))

    def apply(self):
        for g in self.opt.param_groups:
            g["lr"] = self.value()

    def step(self):
        self.t += 1
        self.apply()


def create_data(n=512):
    g = torch.Generator().manual_seed(6)
    x = torch.randn(n, 1, 14, 14, generator=g)
    y = (x[:, 0, :7].mean((1, 2)) > x[:, 0, 7:].mean((1, 2))).long()
    return TensorDataset(x, y)


def main():
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = DistributedDataParallel(nn.Sequential(
        nn.Conv2d(1, 8, 5, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 25, 2)))
    dataset = create_data()
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, args.batch_size, sampler=sampler)

    optimizer = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
    steps_per_epoch = len(loader)
    scheduler = CosineWithWarmup(optimizer, args.lr, args.min_lr,
                                 args.warmup_epochs * steps_per_epoch, args.epochs * steps_per_epoch)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        if rank == 0:
            print(f"Epoch {epoch}  loss {loss.item():.3f}  lr {optimizer.param_groups[0]['lr']:.5f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
