"""SimCLR-like pre-training on vectors; negatives come from all processes."""
import argparse

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dist_fn
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class InfoNCECriterion(nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.temperature = temperature
        self.rank, self.world = dist.get_rank(), dist.get_world_size()

    def gather(self, z):
        return torch.cat(dist_fn.all_gather(z))

    def forward(self, za, zb):
        n = len(za)
        za, zb = F.normalize(za, dim=1), F.normalize(zb, dim=1)
        everyone = self.gather(torch.cat([za, zb]))
        base = self.rank * 2 * n
        own = torch.arange(n) + base
        logits = torch.cat([za, zb]) @ everyone.T / self.temperature
        me = torch.cat([own, own + n])
        logits = logits.scatter(1, me[:, None], float("-inf"))
        return F.cross_entropy(logits, torch.cat([own + n, own]))


class Projector(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(12, width), nn.ReLU(), nn.Linear(width, width))
        self.head = nn.Sequential(nn.ReLU(), nn.Linear(width, out))

    def forward(self, x):
        return self.head(self.trunk(x))


def two_views(x, generator):
    noise = torch.randn((2, *x.shape), generator=generator) * 0.2
    return x + noise[0], x + noise[1]


def main(opt):
    rank = dist.get_rank()
    torch.manual_seed(opt.seed)
    dataset = TensorDataset(torch.randn(128, 12))
    sampler = DistributedSampler(dataset, seed=opt.seed)
    loader = DataLoader(dataset, batch_size=opt.batch, sampler=sampler, drop_last=True)
    model = DDP(Projector(opt.width, 8))
    criterion = InfoNCECriterion(opt.temperature)
    optimizer = torch.optim.SGD(model.parameters(), lr=opt.lr, momentum=0.9)
    noise = torch.Generator().manual_seed(opt.seed * 1000 + rank)
    for epoch in range(opt.epochs):
        sampler.set_epoch(epoch)
        for (x,) in loader:
            a, b = two_views(x, noise)
            za, zb = model(torch.cat([a, b])).chunk(2)
            loss = criterion(za, zb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        shown = loss.detach().clone()
        dist.all_reduce(shown)
        if rank == 0:
            print(f"epoch {epoch}: {shown.item() / dist.get_world_size():.4f}", flush=True)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    for name, value in dict(seed=6, batch=8, epochs=3, width=24, lr=0.05, temperature=0.2).items():
        ap.add_argument(f"--{name}", type=type(value), default=value)
    options = ap.parse_args()
    dist.init_process_group("gloo")
    main(options)
    dist.destroy_process_group()
