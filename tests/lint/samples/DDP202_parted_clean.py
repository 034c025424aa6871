"""Loaders without a sampler that deals out: each rank parts its data, its batches, or its rows."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, RandomSampler, TensorDataset


class Herd(Dataset):
    def __init__(self, path):
        self.cows = torch.load(path)

    def __len__(self):
        return len(self.cows)

    def __getitem__(self, number):
        return self.cows[number]


def learn(net, optimizer, rows):
    optimizer.zero_grad()
    net(rows).square().mean().backward()
    optimizer.step()


def from_a_file_of_its_own(net, optimizer, rank):
    herd = Herd(os.path.join("farm", f"herd-{rank}.pt"))
    for cows in DataLoader(herd, batch_size=8, sampler=RandomSampler(herd)):
        learn(net, optimizer, cows)


def from_another_file(net, optimizer):
    milk = torch.load("milk%s.pt" % os.environ["RANK"])
    for rows in DataLoader(milk, batch_size=8, shuffle=True):
        learn(net, optimizer, rows)
    cups = TensorDataset(milk)
    for (rows,) in DataLoader(cups, batch_size=8):
        learn(net, optimizer, rows)


def whole_batches():
    return DataLoader(torch.load("all.pt"), batch_size=64, drop_last=True)


def own_rows(rows):
    some = rows.shape[0] // dist.get_world_size()
    return rows.narrow(0, dist.get_rank() * some, some)


def by_rows(net, optimizer, rank, world):
    for rows in whole_batches():
        learn(net, optimizer, own_rows(rows))
    for rows in whole_batches():
        learn(net, optimizer, rows.view(world, -1, 4)[rank])
    for rows in whole_batches():
        learn(net, optimizer, torch.tensor_split(rows, world)[rank])


class Barn(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Linear(4, 1)

    def forward(self, rows, marks):
        return (self.scale(rows) - marks).square().mean()


def by_words(rank, world):
    barn = DistributedDataParallel(Barn())
    optimizer = torch.optim.SGD(barn.parameters(), lr=0.1)
    for batch in DataLoader(torch.load("marked.pt"), batch_size=64, drop_last=True):
        part = {word: rows[rank::world] for word, rows in batch.items()}
        optimizer.zero_grad()
        barn(**part).backward()
        optimizer.step()


def by_hand(net, optimizer, rank, world):
    for rows in whole_batches():
        mine = torch.empty(64 // world, 4)
        dist.scatter(mine, list(rows.chunk(world)) if rank == 0 else None, src=0)
        learn(net, optimizer, mine)


def stack_own(rows):
    some = len(rows) // dist.get_world_size()
    first = dist.get_rank() * some
    return torch.stack(rows)[first : first + some]


def by_stacking(net, optimizer):
    rows = torch.load("all.pt")
    for mine in DataLoader(rows, batch_size=64, drop_last=True, collate_fn=stack_own):
        learn(net, optimizer, mine)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    net = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    from_a_file_of_its_own(net, optimizer, rank)
    from_another_file(net, optimizer)
    by_rows(net, optimizer, rank, world)
    by_words(rank, world)
    by_hand(net, optimizer, rank, world)
    by_stacking(net, optimizer)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
