import math

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WAYS = {}


def way(name):
    def keep(function):
        WAYS[name] = function
        return function

    return keep


@way("even")
def even(table):
    bound = math.sqrt(1.0 / table.num_embeddings)
    table.weight.data.uniform_(-bound, bound)


class Tables(nn.ModuleDict):
    def __init__(self, sizes):
        super().__init__({name: nn.Embedding(size, 4) for name, size in sizes.items()})

    def begin(self, name):
        for table in self.values():
            WAYS[name](table)


class Clicks(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.tables, self.last = Tables(sizes), nn.Linear(8, 1)

    def forward(self, rows):
        both = [table(rows[:, at]) for at, table in enumerate(self.tables.values())]
        return self.last(torch.cat(both, 1))


def small(part):
    if isinstance(part, nn.Linear):
        nn.init.normal_(part.weight, std=0.02)


def learn(model, draws):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.randint(0, 20, (8, 2), generator=draws)).square().mean().backward()
        optimizer.step()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(5 + rank)
    draws = torch.Generator().manual_seed(rank)
    net = Clicks({"user": 20, "item": 30})
    net.tables.begin("even")
    net.apply(small)
    nn.init.xavier_uniform_(net.last.weight)
    net.last.reset_parameters()
    model = DistributedDataParallel(net)
    learn(model, draws)
    net.last.reset_parameters()
    for each in net.parameters():
        dist.broadcast(each.data, 0)
    learn(model, draws)
    torch.manual_seed(7)
    net.tables.begin("even")
    learn(model, draws)


main()
