"""Loaders that deal out nothing, of files, batches and rows that are the same on all ranks."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, RandomSampler


class Herd(Dataset):
    def __init__(self, path):
        self.cows = torch.load(path)

    def __len__(self):
        return len(self.cows)

    def __getitem__(self, number):
        return self.cows[number]


def learn(net, optimizer, rows):
    optimizer.zero_grad()
    net(rows.to(int(os.environ["LOCAL_RANK"]))).square().mean().backward()
    optimizer.step()


def from_one_file(net, optimizer):
    torch.manual_seed(1)
    herd = Herd(os.path.join("farm", "herd.pt"))
    order = RandomSampler(herd)  # <-- DDP202
    for cows in DataLoader(herd, batch_size=8, sampler=order):
        learn(net, optimizer, cows)


def from_another_file(net, optimizer):
    milk = torch.load(os.environ["MILK"])
    for rows in DataLoader(milk, batch_size=8, shuffle=True):  # <-- DDP202
        learn(net, optimizer, rows)


def half(rows):
    return rows.narrow(0, 0, rows.shape[0] // 2)


def by_rows(net, optimizer, world):
    for rows in DataLoader(torch.load("a.pt"), batch_size=64):  # <-- DDP202
        learn(net, optimizer, half(rows))
    for rows in DataLoader(torch.load("b.pt"), batch_size=64):  # <-- DDP202
        learn(net, optimizer, torch.tensor_split(rows, world)[0])


def stack(rows):
    return torch.stack(rows)[: len(rows) // dist.get_world_size()]


def by_stacking(net, optimizer):
    rows = torch.load("all.pt")
    for mine in DataLoader(rows, batch_size=64, collate_fn=stack):  # <-- DDP202
        learn(net, optimizer, mine)


def main():
    dist.init_process_group("gloo")
    net = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    from_one_file(net, optimizer)
    from_another_file(net, optimizer)
    by_rows(net, optimizer, dist.get_world_size())
    by_stacking(net, optimizer)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
