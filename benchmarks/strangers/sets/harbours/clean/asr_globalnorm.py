"""Frame classifier behind a global feature normalisation."""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def reduce_mean(t):
    t = t.clone()
    dist.all_reduce(t)
    return t / dist.get_world_size()


class InputNormalization(nn.Module):
    def __init__(self, feat):
        super().__init__()
        self.register_buffer("glob_mean", torch.zeros(feat))
        self.register_buffer("glob_std", torch.ones(feat))

    @torch.no_grad()
    def fit(self, frames):
        self.glob_mean.copy_(reduce_mean(frames.mean(0)))
        second = reduce_mean(frames.pow(2).mean(0))
        self.glob_std.copy_((second - self.glob_mean ** 2).clamp_min(0).sqrt())

    def forward(self, x):
        return (x - self.glob_mean) / (self.glob_std + 1e-6)


class FrameClassifier(nn.Module):
    def __init__(self, feat, classes):
        super().__init__()
        self.norm = InputNormalization(feat)
        self.net = nn.Sequential(nn.Linear(feat, 32), nn.LeakyReLU(), nn.Linear(32, classes))

    def forward(self, x):
        return self.net(self.norm(x))


def speakers(rank, world, n=16, frames=30, feat=12):
    g = torch.Generator().manual_seed(8)
    level = torch.linspace(-3, 3, n).view(n, 1, 1)
    y = torch.randint(0, 3, (n, frames), generator=g)
    x = level + torch.randn(n, frames, feat, generator=g)
    x[..., 0] += y.float()
    per = n // world
    mine = slice(rank * per, (rank + 1) * per)
    return x[mine].flatten(0, 1), y[mine].flatten()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--lr", type=float, default=5e-3)
    args = ap.parse_args()
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    net = FrameClassifier(12, 3)
    x, y = speakers(rank, world)
    net.norm.fit(x)
    model = DDP(net)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
        for idx in order.split(24):
            loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
    if rank == 0:
        print("std of the corpus", [round(v, 3) for v in net.norm.glob_std[:4].tolist()], flush=True)
        torch.save(net.state_dict(), "frame_classifier.pt")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
