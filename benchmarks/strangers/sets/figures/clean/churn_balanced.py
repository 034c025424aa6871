# Churn model on an imbalanced table; minority class is oversampled.
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler


def get_data(n=1200):
    g = torch.Generator().manual_seed(5)
    y = (torch.rand(n, generator=g) < 0.1).long()
    x = torch.randn(n, 20, generator=g) + y[:, None] * 0.6
    return TensorDataset(x, y)


def class_balanced_weights(targets):
    counts = torch.bincount(targets).double()
    return (1.0 / counts)[targets]


def build_loader(ds, args, rank, world_size):
    weights = class_balanced_weights(ds.tensors[1])
    generator = torch.Generator().manual_seed(args.seed + rank)
    sampler = WeightedRandomSampler(weights, num_samples=len(ds) // world_size, generator=generator)
    return DataLoader(ds, batch_size=args.batch_size, sampler=sampler, drop_last=True)


def train_one_epoch(model, loader, optimizer, epoch, rank):
    model.train()
    loss_fn = nn.CrossEntropyLoss()
    running, hits, seen = 0.0, 0, 0
    for step, (x, y) in enumerate(loader):
        out = model(x)
        loss = loss_fn(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
        hits += (out.argmax(1) == y).sum().item()
        seen += len(y)
    if rank == 0:
        print(f"epoch {epoch}: loss {running / (step + 1):.4f} acc {hits / seen:.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--seed", type=int, default=42)
    args = parser.parse_args()

    dist.init_process_group(backend="gloo")
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(args.seed)

    ds = get_data()
    loader = build_loader(ds, args, rank, world_size)
    net = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 2))
    net = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.Adam(net.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        train_one_epoch(net, loader, optimizer, epoch, rank)
    if rank == 0:
        torch.save(net.module.state_dict(), "churn.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
