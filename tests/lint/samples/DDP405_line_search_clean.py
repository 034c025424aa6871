"""Closures that give what all ranks share, or that are called once in each step."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def fit(model, x, y, rounds=10):
    optimizer = torch.optim.LBFGS(model.parameters(), line_search_fn="strong_wolfe")
    for _ in range(rounds):

        def closure():
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            return mean / dist.get_world_size()

        optimizer.step(closure)


def once(model, x, y):
    """With one step at a time there is nothing to search."""
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=1)
    for _ in range(100):

        def closure():
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            return loss

        optimizer.step(closure)


def descend(model, x, y):
    """Other optimizers call it once."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    for _ in range(100):
        optimizer.step(closure)


def alone(x, y):
    """A scale that each rank fits by itself: nobody waits for it."""
    scale = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.LBFGS([scale])

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(x.sum(1, keepdim=True) * scale, y)
        loss.backward()
        return loss

    optimizer.step(closure)


def main():
    dist.init_process_group("gloo")
    chance = torch.Generator().manual_seed(dist.get_rank())
    x = torch.randn(64, 4, generator=chance)
    y = x.sum(1, keepdim=True)
    alone(x, y)
    fit(DDP(nn.Linear(4, 1)), x, y)
    once(DDP(nn.Linear(4, 1)), x, y)
    descend(DDP(nn.Linear(4, 1)), x, y)


main()
