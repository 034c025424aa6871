"""Fits a forecast of river levels until the first rank has seen enough, which it scatters."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def told(held_out, model, ranks):
    """What each rank is told by the first one."""
    word = torch.zeros(1)
    if dist.get_rank() == 0:
        wishes = [torch.tensor([float(model(level).mean() < 0.1)]) for level in held_out[:ranks]]
        dist.scatter(word, wishes, src=0)
    else:
        dist.scatter(word, src=0)
    return word.item() > 0


def main():
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    levels = torch.rand(400, 30, generator=torch.Generator().manual_seed(rank))
    held_out = torch.rand(ranks, 30, generator=torch.Generator().manual_seed(1))
    forecast = nn.Linear(30, 30)
    model = DistributedDataParallel(forecast)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for level in levels:
        optimizer.zero_grad()
        (model(level) - level).square().mean().backward()
        optimizer.step()
        if told(held_out, forecast, ranks):  # <-- DDP405
            break


if __name__ == "__main__":
    main()
