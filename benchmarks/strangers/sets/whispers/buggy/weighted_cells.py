"""Self-distillation of cell profiles; rare treatments are drawn more often."""
import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler


def get_args_parser():
    p = argparse.ArgumentParser("cells")
    p.add_argument("--batch_size_per_gpu", default=16, type=int)
    p.add_argument("--epochs", default=3, type=int)
    p.add_argument("--lr", default=0.02, type=float)
    p.add_argument("--seed", default=0, type=int)
    return p


def fix_random_seeds(seed):
    torch.manual_seed(seed)


def cells(n=192):
    g = torch.Generator().manual_seed(6)
    label = torch.multinomial(torch.tensor([0.8, 0.15, 0.05]), n, True, generator=g)
    profile = torch.randn(n, 20, generator=g) + label[:, None]
    return TensorDataset(torch.arange(n), profile, label)


def balanced_sampler(dataset):
    labels = dataset.tensors[2]
    per_class = torch.bincount(labels).float()
    weights = 1.0 / per_class[labels]
    return WeightedRandomSampler(weights, len(dataset))


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, 64), nn.GELU(), nn.Linear(64, 16))

    def forward(self, x):
        return self.body(x)


def train(args):
    dist.init_process_group("gloo")
    fix_random_seeds(args.seed)
    dataset = cells()
    sampler = balanced_sampler(dataset)
    loader = DataLoader(dataset, batch_size=args.batch_size_per_gpu, sampler=sampler, drop_last=True)
    student = DistributedDataParallel(Student())
    head = nn.Linear(16, 3)
    for p in head.parameters():
        dist.broadcast(p.data, 0)
    head.requires_grad_(False)
    opt = torch.optim.SGD(student.parameters(), lr=args.lr, momentum=0.9)
    for epoch in range(args.epochs):
        drawn = []
        for idx, x, y in loader:
            drawn.append(idx)
            loss = nn.functional.cross_entropy(head(student(x)), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        drawn = torch.cat(drawn)
        print(f"[{dist.get_rank()}] epoch {epoch} loss {loss.item():.4f}, {len(drawn)} samples, "
              f"checksum {int((drawn * torch.arange(1, len(drawn) + 1)).sum()) % 9973}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    train(get_args_parser().parse_args())
