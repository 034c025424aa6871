import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.first = nn.Sequential(nn.Linear(8, 8), nn.Tanh())

    def forward(self, x):
        states = self.body(x)
        return states, self.first(states)  # <-- DDP301


class Two(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.way = way
        self.words = Words()
        self.where, self.what = nn.Linear(8, 2), nn.Linear(8, 1)

    def forward(self, x):
        states, first = self.words(x)
        h = first if self.way == "first" else states
        return {"where": self.where(h), "what": self.what(h)}


def cost(told, x):
    found = x[:, 0] > 0
    parts = [told["what"].square().mean()]
    if found.any():  # <-- DDP301
        parts.append(told["where"][found].square().mean())
    return sum(parts)


class Remembers(nn.Module):
    """What it gives is not used; what it keeps is."""

    def __init__(self):
        super().__init__()
        self.score = nn.Linear(8, 4)
        self.extra = None

    def forward(self, x):
        self.extra = self.score(x).square().mean()
        return self.extra


class Balanced(nn.Module):
    def __init__(self):
        super().__init__()
        self.router, self.body = Remembers(), nn.Linear(8, 1)

    def forward(self, x):
        self.router(x)
        return self.body(x).mean() + self.router.extra


def main():
    dist.init_process_group("gloo")
    data = TensorDataset(torch.randn(64, 8))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    net = DistributedDataParallel(Two("mean"))
    balanced = DistributedDataParallel(Balanced())
    opt = torch.optim.SGD([*net.parameters(), *balanced.parameters()], lr=0.1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for (x,) in loader:
            (cost(net(x), x) + balanced(x)).backward()
            opt.step()
            opt.zero_grad()
    dist.destroy_process_group()


main()
