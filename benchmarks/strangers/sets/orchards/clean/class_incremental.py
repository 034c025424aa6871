# Class-incremental learning on digits: tasks arrive one after another,
# each brings two new classes. Small rehearsal memory.
import argparse, random
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset, ConcatDataset, DistributedSampler, Subset


class GrowingNet(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.width = width
        self.backbone = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.heads = nn.ModuleList()

    def add_task(self, n):
        self.heads.append(nn.Linear(self.width, n))

    def forward(self, x):
        f = self.backbone(x)
        return torch.cat([h(f) for h in self.heads], dim=1)


class Learner:
    def __init__(self, args):
        self.args = args
        self.rank = dist.get_rank()
        net = GrowingNet()
        net.add_task(args.first)
        self.net = nn.parallel.DistributedDataParallel(net)
        self.memory = []
        self.known = args.first

    def begin_task(self, t):
        if t > 0:
            net = self.net.module
            net.add_task(self.args.step)
            self.net = nn.parallel.DistributedDataParallel(net)
            self.known += self.args.step
        self.opt = torch.optim.Adam(self.net.parameters(), lr=self.args.lr)

    def loader(self, ds):
        full = ConcatDataset([ds, *self.memory]) if self.memory else ds
        s = DistributedSampler(full, seed=self.args.seed)
        return DataLoader(full, self.args.bs, sampler=s), s

    def learn(self, ds):
        dl, s = self.loader(ds)
        self.net.train()
        for ep in range(self.args.epochs):
            s.set_epoch(ep)
            for x, y in dl:
                x = x + 0.05 * torch.randn_like(x)
                loss = F.cross_entropy(self.net(x), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()

    def remember(self, ds):
        g = torch.Generator().manual_seed(self.args.seed)
        keep = torch.randperm(len(ds), generator=g)[: self.args.mem]
        self.memory.append(TensorDataset(*(t[keep] for t in ds.tensors)))

    @torch.no_grad()
    def test(self, ds):
        self.net.eval()
        part = Subset(ds, range(self.rank, len(ds), dist.get_world_size()))
        c = torch.zeros(2)
        for x, y in DataLoader(part, 64):
            c += torch.tensor([(self.net(x).argmax(1) == y).sum().item(), len(y)])
        dist.all_reduce(c)
        return (c[0] / c[1]).item()


def task_data(x, y, lo, hi):
    m = (y >= lo) & (y < hi)
    return TensorDataset(x[m], y[m])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--first", type=int, default=4)
    ap.add_argument("--step", type=int, default=2)
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--bs", type=int, default=32)
    ap.add_argument("--mem", type=int, default=60)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--seed", type=int, default=0)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    random.seed(args.seed + dist.get_rank())
    np.random.seed(args.seed + dist.get_rank())
    torch.manual_seed(args.seed + dist.get_rank())  # different noise on every process

    x, y = load_digits(return_X_y=True)
    x, y = torch.tensor(x / 16.0, dtype=torch.float32), torch.tensor(y)
    is_test = torch.arange(len(x)) % 4 == 0
    xtr, ytr, xte, yte = x[~is_test], y[~is_test], x[is_test], y[is_test]

    learner = Learner(args)
    bounds = [(0, args.first)] + [(c, c + args.step) for c in range(args.first, 10, args.step)]
    for t, (lo, hi) in enumerate(bounds):
        learner.begin_task(t)
        ds = task_data(xtr, ytr, lo, hi)
        learner.learn(ds)
        learner.remember(ds)
        acc = learner.test(task_data(xte, yte, 0, hi))
        if dist.get_rank() == 0:
            print(f"after task {t}: {hi} classes, accuracy {acc:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
