"""Gradient accumulation in a fit method, every micro-batch reduces."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Fitter:
    accumulate = 8

    def __init__(self, net):
        self.net = DDP(net)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.05)
        self.pending = 0

    def micro(self, x, y):
        if self.pending + 1 < self.accumulate:
            with self.net.no_sync():
                (nn.functional.mse_loss(self.net(x), y) / self.accumulate).backward()
        else:
            (nn.functional.mse_loss(self.net(x), y) / self.accumulate).backward()
        self.pending += 1
        if self.pending == self.accumulate:
            self.opt.step()
            self.opt.zero_grad()
            self.pending = 0

    def fit(self, loader):
        for x, y in loader:
            self.micro(x, y)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    data = TensorDataset(torch.randn(512, 4, generator=g), torch.randn(512, 1, generator=g))
    Fitter(nn.Linear(4, 1)).fit(
        DataLoader(data, 8, sampler=DistributedSampler(data), drop_last=True)
    )
    dist.destroy_process_group()


main()
