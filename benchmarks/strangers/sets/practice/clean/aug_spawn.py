import os
import random

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Pictures(Dataset):
    def __init__(self, n, transform=None):
        g = torch.Generator().manual_seed(4)
        self.x = torch.randn(n, 3, 12, 12, generator=g)
        self.y = (self.x.mean((1, 2, 3)) > 0).long()
        self.transform = transform

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x = self.x[i]
        if self.transform is not None:
            x = self.transform(x)
        return x, self.y[i]


def flip(x, p):
    return x.flip(-1) if random.random() < p else x


def jitter(x, scale):
    return x * (1 + scale * random.uniform(-1, 1))


class Augment:
    def __init__(self, p, scale):
        self.p, self.scale = p, scale

    def __call__(self, x):
        return jitter(flip(x, self.p), self.scale)


def fit(rank, world, dataset, epochs):
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29655")
    dist.init_process_group("gloo", rank=rank, world_size=world)
    random.seed(rank)
    torch.manual_seed(0)
    net = DistributedDataParallel(nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2)))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=16, sampler=sampler)
    for ep in range(epochs):
        sampler.set_epoch(ep)
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            print("epoch", ep, "loss", round(loss.item(), 4), flush=True)
    dist.destroy_process_group()


def launch(flip_p=0.5, scale=0.1, epochs=2, world=2):
    data = Pictures(128, transform=Augment(flip_p, scale))
    mp.spawn(fit, args=(world, data, epochs), nprocs=world)


if __name__ == "__main__":
    launch()
