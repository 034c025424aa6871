"""Small convnet on synthetic CIFAR-like images.

    torchrun --nproc-per-node=2 cifar_trainer.py --epochs 3
"""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class ConvNet(nn.Module):
    def __init__(self, width=16, num_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width * 2, 3, stride=2, padding=1)
        self.bn2 = nn.BatchNorm2d(width * 2)
        self.fc = nn.Linear(width * 2, num_classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        x = x.mean(dim=(2, 3))
        return self.fc(x)


def make_split(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 10, (n,), generator=g)
    x = torch.randn(n, 3, 16, 16, generator=g) + y.view(-1, 1, 1, 1) * 0.1
    return TensorDataset(x, y)


class Trainer:
    def __init__(self, args):
        self.args = args
        self.rank = dist.get_rank()
        torch.manual_seed(args.seed)
        self.model = DDP(ConvNet())
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=args.lr, momentum=0.9)
        train_set, val_set = make_split(256, 0), make_split(96, 1)
        self.sampler = DistributedSampler(train_set)
        self.train_loader = DataLoader(train_set, batch_size=args.batch_size, sampler=self.sampler)
        self.val_loader = DataLoader(val_set, batch_size=args.batch_size)

    def train_epoch(self, epoch):
        self.model.train()
        self.sampler.set_epoch(epoch)
        running = 0.0
        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            running += loss.item()
        return running / len(self.train_loader)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        correct, total = 0, 0
        for x, y in self.val_loader:
            pred = self.model.module(x).argmax(1)
            correct += (pred == y).sum().item()
            total += y.numel()
        return correct / total

    def fit(self):
        best = 0.0
        for epoch in range(self.args.epochs):
            loss = self.train_epoch(epoch)
            if self.rank == 0:
                acc = self.validate()
                best = max(best, acc)
                print(f"epoch {epoch}: loss {loss:.4f} val acc {acc:.3f} best {best:.3f}", flush=True)
            dist.barrier()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=42)
    args = parser.parse_args()

    dist.init_process_group("gloo")
    Trainer(args).fit()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
