"""Tensors of the rank's own numbers, and as long on every rank."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def signals(count, seed):
    noise = torch.randn(count, 6, generator=torch.Generator().manual_seed(seed))
    level = noise.cumsum(dim=1).amax(dim=1)
    return noise, (level >= seed / 8).long()


def fit(net, count, rounds):
    dist.init_process_group("gloo")
    ddp = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    inputs, labels = signals(count, dist.get_rank())
    for _ in range(rounds):
        for one, label in zip(inputs.split(4), labels.split(4), strict=True):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(ddp(one), label).backward()
            optimizer.step()


if __name__ == "__main__":
    fit(torch.nn.Linear(6, 2), 64, 3)
