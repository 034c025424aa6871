"""Patch classifier, trained with square and wide crops batched separately."""
import argparse
import random

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import BatchSampler, DataLoader, Dataset, DistributedSampler


class CropDataset(Dataset):
    def __init__(self, n=512, n_cls=6):
        g = torch.Generator().manual_seed(11)
        protos = torch.randn(n_cls, 48, generator=g)
        self.labels = torch.randint(0, n_cls, (n,), generator=g)
        self.feats = protos[self.labels] + 0.8 * torch.randn(n, 48, generator=g)
        self.wide = torch.rand(n, generator=g) > 0.5

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.feats[i], self.labels[i]


class AspectBatchSampler(BatchSampler):
    """Groups indices coming from ``sampler`` so that every batch has one aspect ratio."""

    def __init__(self, sampler, wide, batch_size):
        super().__init__(sampler, batch_size, drop_last=True)
        self.wide = wide

    def __iter__(self):
        buckets = {True: [], False: []}
        for idx in self.sampler:
            bucket = buckets[bool(self.wide[idx])]
            bucket.append(idx)
            if len(bucket) == self.batch_size:
                yield list(bucket)
                bucket.clear()

    def __len__(self):
        return len(self.sampler) // self.batch_size


class Runner:
    def __init__(self, model, optimizer, loader, max_iters):
        self.model, self.optimizer, self.loader = model, optimizer, loader
        self.max_iters = max_iters
        self.criterion = nn.CrossEntropyLoss()

    def before_epoch(self, epoch):
        sampler = self.loader.batch_sampler.sampler
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(epoch)

    def run_epoch(self, epoch):
        self.before_epoch(epoch)
        self.model.train()
        total = 0.0
        for it, (x, y) in enumerate(self.loader):
            if it == self.max_iters:
                break
            loss = self.criterion(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / self.max_iters


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--iters", type=int, default=12)
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


def main():
    args = parse_args()
    dist.init_process_group("gloo")
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    dataset = CropDataset()
    sampler = DistributedSampler(dataset, shuffle=True, seed=args.seed)
    loader = DataLoader(dataset, batch_sampler=AspectBatchSampler(sampler, dataset.wide, args.batch_size))
    model = DDP(nn.Sequential(nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 6)))
    runner = Runner(model, torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9), loader, args.iters)
    for epoch in range(args.epochs):
        loss = runner.run_epoch(epoch)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} loss {loss:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
