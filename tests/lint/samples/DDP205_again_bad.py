"""Diffusion: after the model is built, all ranks are seeded alike again."""

import random
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def fix(seed):
    random.seed(seed)
    torch.manual_seed(seed)


class Diffusion:
    def __init__(self, net):
        self.net = net

    def loss(self, x):
        t = torch.rand(len(x), 1)
        eps = torch.randn_like(x)
        return (self.net(torch.cat([(1 - t) * x + t * eps, t], 1)) - eps).square().mean()


def main():
    dist.init_process_group("gloo")
    fix(1)
    model = DDP(nn.Sequential(nn.Linear(9, 32), nn.SiLU(), nn.Linear(32, 8)))
    fix(2)  # <-- DDP205
    data = TensorDataset(torch.randn(256, 8, generator=torch.Generator().manual_seed(0)))
    loader = DataLoader(data, 16, sampler=DistributedSampler(data))
    process = Diffusion(model)
    opt = torch.optim.Adam(model.parameters())
    for epoch in range(3):
        loader.sampler.set_epoch(epoch)
        for (x,) in loader:
            opt.zero_grad()
            process.loss(x).backward()
            opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
