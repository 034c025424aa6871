"""The second head learns only from a batch in which this rank has something for it."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)

    def forward(self, x, marks):
        seen = self.body(x)
        found = {"first": self.first(seen).mean()}
        marked = torch.cat([mark[:1] for mark in marks])
        if len(marked) > 1:  # by a part that learns from every batch
            found["again"] = self.first(seen[:1]).mean()
        if len(marked) > 0:
            found["second"] = self.second(seen).mean()
        return found


def pictures(rank, each):
    for number in range(rank * each, (rank + 1) * each):
        yield torch.randn(2, 4), [torch.zeros(number % 3), torch.zeros(number % 2)]


def main():
    dist.init_process_group("gloo")
    net = DistributedDataParallel(Heads())  # <-- DDP301
    for x, marks in pictures(dist.get_rank(), 12):
        sum(net(x, marks).values()).backward()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
