import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from data import make_loaders, set_seed


@torch.no_grad()
def validate(net, loader):
    net.eval()
    stats = torch.zeros(2)
    for x, y in loader:
        stats[0] += (net(x).argmax(1) == y).sum()
        stats[1] += len(y)
    dist.all_reduce(stats)
    net.train()
    return (stats[0] / stats[1]).item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--val-ratio", type=float, default=0.2)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=1234)
    args = parser.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    set_seed(args.seed, rank)
    train_loader, val_loader, train_sampler = make_loaders(args.batch_size, args.val_ratio)

    net = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 20))
    model = DDP(net)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        train_sampler.set_epoch(epoch)
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if (epoch + 1) % 5 == 0:
            acc = validate(model.module, val_loader)
            if rank == 0:
                print(f"epoch {epoch} train loss {loss.item():.3f} val acc {acc:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
