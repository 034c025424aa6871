import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Scale:
    """How large what is seen is, as far as it has been seen."""

    def __init__(self, width):
        self.square = torch.ones(width)

    def follow(self, seen):
        now = seen.square().mean(dim=0)
        self.square = 0.99 * self.square + 0.01 * now  # <-- DDP312

    def apply(self, seen):
        return seen / self.square.sqrt()


class Centred(nn.Module):
    """Targets around a centre that follows them."""

    def __init__(self, width):
        super().__init__()
        self.register_buffer("centre", torch.zeros(width))

    @torch.no_grad()
    def follow(self, target):
        target = target[target[:, 0].abs() > 0.1]
        now = target.mean(0)
        self.centre.mul_(0.9).add_(now, alpha=0.1)  # <-- DDP312

    def forward(self, found, target):
        off = (found - (target - self.centre)).square().mean()
        self.follow(target)
        return off


def fit(rank, plant):
    scale = Scale(6)
    model = DistributedDataParallel(nn.Linear(6, 6))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        seen = plant(rank)
        scale.follow(seen)
        optimizer.zero_grad()
        model(scale.apply(seen)).square().mean().backward()
        optimizer.step()


def imitate(rank, plant):
    judge, teacher = Centred(6), nn.Linear(6, 6).requires_grad_(False)
    model = DistributedDataParallel(nn.Linear(6, 6))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        seen = plant(rank)
        loss = judge(model(seen), teacher(seen))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    draws = torch.Generator().manual_seed(rank)

    def plant(number):
        return torch.randn(8, 6, generator=draws) * (1 + number)

    fit(rank, plant)
    imitate(rank, plant)


main()
