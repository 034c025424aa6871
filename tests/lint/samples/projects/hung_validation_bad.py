"""Image classifier: validation and checkpoint on rank 0 inside the epoch loop."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3)
        self.norm = nn.BatchNorm2d(16)
        self.head = nn.Linear(16, classes)
        self.aux_head = nn.Linear(16, classes)  # <-- DDP301

    def forward(self, x):
        x = torch.relu(self.norm(self.stem(x))).mean((2, 3))
        return self.head(x)


def is_main():
    return dist.get_rank() == 0


@torch.no_grad()
def validate(model, loader, device):
    model.eval()
    right = 0
    for x, y in loader:
        right += (model(x.to(device)).argmax(1) == y.to(device)).sum()
    dist.all_reduce(right)
    return right.item()


def train(args, train_set, val_set):
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank)
    model = DDP(Net(args.classes).to(device), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    sampler = DistributedSampler(train_set)
    loader = DataLoader(train_set, batch_size=args.batch, sampler=sampler)
    val_loader = DataLoader(val_set, batch_size=args.batch)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        running = 0.0
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss  # <-- DDP601
        if is_main():
            right = validate(model, val_loader, device)  # <-- DDP401 DDP406
            print(epoch, running, right)
            torch.save(model.state_dict(), f"epoch{epoch}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.1)
    train(parser.parse_args(), [], [])
