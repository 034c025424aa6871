"""Each rank takes every nth line, and makes as many rows as these have words."""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Words(dict):
    @classmethod
    def of(cls, lines):
        seen = sorted({word for line in lines for word in line.split()})
        return cls({"<none>": 0, **{word: number + 1 for number, word in enumerate(seen)}})


class Guess(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.rows = nn.Embedding(len(words), 16)
        self.guess = nn.Linear(16, 2)

    def forward(self, numbers):
        return self.guess(self.rows(numbers).mean(0))


def main(name):
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    with open(name) as file:
        mine = [line for number, line in enumerate(file.readlines()) if number % ranks == rank]
    words = Words.of(mine)
    torch.manual_seed(0)
    net = DistributedDataParallel(Guess(words))  # <-- DDP310
    steps = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(20):
        line = mine[int(torch.randint(len(mine), ()))]
        numbers = torch.tensor([words[word] for word in line.split()])
        steps.zero_grad()
        net(numbers).square().sum().backward()
        steps.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
