import argparse
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Shapes(Dataset):
    def __init__(self, n, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.randint(0, 3, (n,), generator=g)
        self.x = torch.randn(n, 1, 14, 14, generator=g) * 0.6
        for k in range(n):
            r, c = torch.randint(2, 8, (2,), generator=g).tolist()
            if self.y[k] == 0:
                self.x[k, 0, r:r + 4, c:c + 4] += 1.5
            elif self.y[k] == 1:
                self.x[k, 0, r, c:c + 5] += 2.0
            else:
                self.x[k, 0, r:r + 5, c] += 2.0

    def __len__(self):
        return len(self.y)

    def __getitem__(self, k):
        return self.x[k], self.y[k]


def convnet():
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(12, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Linear(64, 3))


class Trainer:
    def __init__(self, args):
        self.args = args
        self.rank = dist.get_rank()
        self.start_epoch = 0
        torch.manual_seed(args.seed)
        self.net = convnet()
        self.data = Shapes(args.n)
        self.sampler = DistributedSampler(self.data, shuffle=True, seed=args.seed)
        self.loader = DataLoader(self.data, batch_size=args.bs, sampler=self.sampler)
        self.opt = torch.optim.Adam(self.net.parameters(), lr=args.lr)
        if args.resume and os.path.exists(args.resume):
            self._load(args.resume)
        self.ddp = DDP(self.net)

    def _load(self, path):
        state = torch.load(path)
        self.net.load_state_dict(state["net"])
        self.opt.load_state_dict(state["opt"])
        self.start_epoch = state["epoch"] + 1

    def _save(self, epoch):
        if self.rank == 0 and self.args.out:
            torch.save({"net": self.net.state_dict(), "opt": self.opt.state_dict(), "epoch": epoch},
                       os.path.join(self.args.out, "last.pt"))

    def run_epoch(self, epoch):
        self.sampler.set_epoch(epoch)
        tot = torch.zeros(2)
        for x, y in self.loader:
            loss = F.cross_entropy(self.ddp(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            tot += torch.tensor([loss.item() * len(y), len(y)])
        dist.all_reduce(tot)
        return (tot[0] / tot[1]).item()

    def fit(self):
        for epoch in range(self.start_epoch, self.args.epochs):
            loss = self.run_epoch(epoch)
            self._save(epoch)
            if self.rank == 0:
                print(f"epoch {epoch} loss {loss:.4f}", flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--n", type=int, default=480)
    ap.add_argument("--bs", type=int, default=24)
    ap.add_argument("--epochs", type=int, default=6)
    ap.add_argument("--lr", type=float, default=4e-3)
    ap.add_argument("--seed", type=int, default=6)
    ap.add_argument("--resume", default="")
    ap.add_argument("--out", default="")
    args = ap.parse_args()
    dist.init_process_group("gloo")
    if not args.out:
        args.out = tempfile.mkdtemp(prefix="shapes_")
    Trainer(args).fit()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
