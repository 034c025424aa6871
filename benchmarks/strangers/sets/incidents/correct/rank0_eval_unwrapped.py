import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def dataset(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 20, generator=g)
    return TensorDataset(x, (x[:, :10].sum(1) > x[:, 10:].sum(1)).long())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(32, 2)

    def forward(self, x):
        return self.head(self.body(x))


@torch.no_grad()
def evaluate(net, loader):
    was_training = net.training
    net.eval()
    hits = sum((net(x).argmax(1) == y).sum().item() for x, y in loader)
    net.train(was_training)
    return hits / len(loader.dataset)


def save_best(net, acc, best, path):
    if acc <= best:
        return best
    torch.save(net.state_dict(), path)
    return acc


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--ckpt", default="best.pt")
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(Net())
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    train = dataset(256, 0)
    sampler = DistributedSampler(train)
    loader = DataLoader(train, batch_size=16, sampler=sampler)
    val_loader = DataLoader(dataset(100, 1), batch_size=32) if rank == 0 else None

    best = 0.0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            opt.zero_grad()
            F.cross_entropy(model(x), y).backward()
            opt.step()
        if rank == 0:
            acc = evaluate(model.module, val_loader)
            best = save_best(model.module, acc, best, args.ckpt)
            print(f"epoch {epoch} acc {acc:.3f} best {best:.3f}", flush=True)
        dist.barrier()

    final = Net()
    final.load_state_dict(torch.load(args.ckpt))
    if rank == 0:
        print("reloaded acc", evaluate(final, val_loader), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
