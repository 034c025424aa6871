import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def hidden(draws, row):
    hide = draws.random(len(row)) < 0.2
    return np.where(hide, 0, row), np.where(hide, row, -100)


def batches(seed):
    draws = np.random.default_rng(seed)
    while True:
        rows = [hidden(draws, draws.integers(1, 30, 12)) for _ in range(4)]
        yield tuple(torch.from_numpy(np.stack(column)) for column in zip(*rows))


def main(steps=20):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = DistributedDataParallel(nn.Sequential(nn.Embedding(30, 8), nn.Linear(8, 30)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    total = torch.zeros(2)
    for _, (seen, wanted) in zip(range(steps), batches(100 + dist.get_rank())):
        told = net(seen).flatten(0, 1)
        off = nn.functional.cross_entropy(
            told, wanted.flatten(), ignore_index=-100, reduction="sum"
        )
        number = (wanted != -100).sum()
        loss = off / number  # <-- DDP309
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += torch.stack([off.detach(), number.float()])
    dist.all_reduce(total)
    print(total)


main()
