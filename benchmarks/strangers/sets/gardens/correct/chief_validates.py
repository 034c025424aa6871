import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def derm(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 2, (n,), generator=g)
    x = torch.randn(n, 3, 10, 10, generator=g)
    x[:, 0, 3:7, 3:7] += 0.9 * y.view(-1, 1, 1)
    return TensorDataset(x, y)


def net_with_bn():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8),
                         nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 2))


class Run:
    def __init__(self, a):
        self.a, self.rank = a, dist.get_rank()
        torch.manual_seed(a.seed)
        self.ddp = DistributedDataParallel(net_with_bn())
        self.opt = torch.optim.Adam(self.ddp.parameters(), lr=a.lr)
        train = derm(a.n, 1)
        self.sampler = DistributedSampler(train)
        self.loader = DataLoader(train, a.bs, sampler=self.sampler)

    def validate(self):
        net = self.ddp.module
        net.eval()
        x, y = derm(200, 2).tensors
        with torch.no_grad():
            acc = (net(x).argmax(1) == y).double().mean()
        net.train()
        return acc

    def go(self):
        best, wait = 0.0, 0
        for epoch in range(self.a.epochs):
            self.sampler.set_epoch(epoch)
            for x, y in self.loader:
                self.opt.zero_grad()
                nn.functional.cross_entropy(self.ddp(x), y).backward()
                self.opt.step()
            acc = torch.zeros((), dtype=torch.float64)
            if self.rank == 0:
                acc = self.validate()
                print(f"epoch {epoch} acc {acc.item():.3f}", flush=True)
            dist.broadcast(acc, src=0)
            if acc.item() > best:
                best, wait = acc.item(), 0
            else:
                wait += 1
                if wait >= self.a.patience:
                    break


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--n", type=int, default=320)
    p.add_argument("--bs", type=int, default=16)
    p.add_argument("--epochs", type=int, default=8)
    p.add_argument("--patience", type=int, default=2)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--seed", type=int, default=31)
    args = p.parse_args()
    dist.init_process_group("gloo")
    Run(args).go()
    dist.destroy_process_group()
