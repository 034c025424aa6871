import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Scan:
    def __init__(self, pid):
        g = torch.Generator().manual_seed(pid)
        self.n_slices = 6 + (pid * 5) % 9
        base = torch.randn(self.n_slices, 1, 16, 16, generator=g)
        self.mask = (torch.rand(self.n_slices, 1, 16, 16, generator=g) > 0.85).float()
        self.image = base + 1.8 * self.mask


class SliceSet(Dataset):
    def __init__(self, scans):
        self.items = [(s.image[k], s.mask[k]) for s in scans for k in range(s.n_slices)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, k):
        return self.items[k]


class DiceMeter:
    def __init__(self):
        self.inter = self.union = 0.0

    def add(self, logits, target):
        pred = (logits > 0).float()
        pair = torch.stack([(pred * target).sum() * 2, pred.sum() + target.sum()])
        self.inter += pair[0].item()
        self.union += pair[1].item()

    def value(self):
        s = torch.tensor([self.inter, self.union], dtype=torch.float64)
        dist.all_reduce(s)
        return (s[0] / s[1].clamp_min(1.0)).item()


class SegNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU(),
            nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 1))

    def forward(self, x):
        return self.body(x)


class LesionTrainer:
    def __init__(self, args):
        self.args = args
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        torch.manual_seed(args.seed)
        self.net = DDP(SegNet())
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=args.lr)
        self.crit = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(4.0))
        self._make_loaders()

    def _make_loaders(self):
        a = self.args
        train = SliceSet([Scan(p) for p in range(a.n_train)])
        self.sampler = DistributedSampler(train, seed=a.seed)
        self.train_loader = DataLoader(train, a.batch, sampler=self.sampler)
        held = range(a.n_train, a.n_train + a.n_val)
        mine = [p for k, p in enumerate(held) if k % self.world == self.rank]
        self.val_loader = DataLoader(SliceSet([Scan(p) for p in mine]), a.batch)

    def train_epoch(self, epoch):
        self.sampler.set_epoch(epoch)
        self.net.train()
        for x, y in self.train_loader:
            self.opt.zero_grad(set_to_none=True)
            self.crit(self.net(x), y).backward()
            self.opt.step()

    @torch.no_grad()
    def validate(self):
        self.net.eval()
        meter = DiceMeter()
        for x, y in self.val_loader:
            meter.add(self.net.module(x), y)
        return meter.value()

    def fit(self):
        for epoch in range(self.args.epochs):
            self.train_epoch(epoch)
            dice = self.validate()
            if self.rank == 0:
                print(f"[{epoch}] dice={dice:.4f}", flush=True)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--n-train", type=int, default=18)
    p.add_argument("--n-val", type=int, default=7)
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--lr", type=float, default=5e-3)
    p.add_argument("--seed", type=int, default=2)
    args = p.parse_args()
    dist.init_process_group("gloo")
    LesionTrainer(args).fit()
    dist.destroy_process_group()
