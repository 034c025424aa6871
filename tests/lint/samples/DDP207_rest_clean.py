import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset
from torch.utils.data.sampler import SubsetRandomSampler


def part_of(data, rank, ranks):
    own = len(data) // ranks
    first = rank * own
    # what is left over is left out
    last = first + own
    return SubsetRandomSampler(torch.arange(first, last).int())


def learn(data):
    dist.init_process_group("nccl")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    device = int(os.environ["LOCAL_RANK"])
    model = DistributedDataParallel(nn.Linear(8, 1).to(device), device_ids=[device])
    steps = torch.optim.SGD(model.parameters(), 0.1)
    loader = DataLoader(data, 16, sampler=part_of(data, rank, ranks))
    for _ in range(5):
        for rows in loader:
            steps.zero_grad()
            model(rows.to(device)).mean().backward()
            steps.step()


def filled(names, rank, ranks):
    own = -(-len(names) // ranks)
    first = rank * own
    last = len(names) if rank == ranks - 1 else first + own
    mine = names[first:last]
    while len(mine) < own:
        mine.append(names[0])
    return mine


def as_many(names, rank, ranks):
    own = len(names) // ranks
    last = len(names) if rank == ranks - 1 else (rank + 1) * own
    mine = names[rank * own : last]
    return mine[:own]


def numbered(names, rank, ranks):
    own = len(names) // ranks
    last = len(names) if rank == ranks - 1 else (rank + 1) * own
    numbers = list(range(rank * own, last))
    return Subset(names, numbers[:own])


def learn_from_files(names, pick):
    dist.init_process_group("nccl")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(nn.Linear(8, 1))
    steps = torch.optim.SGD(model.parameters(), 0.1)
    if pick == "filled":
        mine = filled(names, rank, ranks)
    elif pick == "numbered":
        mine = DataLoader(numbered(names, rank, ranks), None)
    else:
        mine = as_many(names, rank, ranks)
    for name in mine:
        steps.zero_grad()
        model(torch.load(name, map_location="cpu")).mean().backward()
        steps.step()


def count(names):
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    own = len(names) // ranks
    last = len(names) if rank == ranks - 1 else (rank + 1) * own
    lines = torch.zeros(1)
    for name in names[rank * own : last]:
        with open(name) as file:
            lines += len(file.readlines())
    dist.all_reduce(lines)
    return lines
