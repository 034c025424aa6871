"""Where one card is there, one process goes on alone: its metric is that of all."""

import argparse

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def loader_of(options):
    data = TensorDataset(torch.arange(64.0).reshape(-1, 1))
    if torch.cuda.device_count() == 1:
        options.several = 0
    sampler = DistributedSampler(data, shuffle=False) if options.several else None
    return DataLoader(data, batch_size=8, sampler=sampler)


def score(net, loader):
    with torch.no_grad():
        return sum(net(seen).mean() for (seen,) in loader) / len(loader)


def learn(net, seen):
    net(seen).mean().backward()


def alone(options):
    net, loader, best = nn.Linear(1, 1), loader_of(options), 0.0
    for epoch in range(3):
        learn(net, torch.ones(4, 1))
        found = score(net, loader)
        if found > best:
            best = found
            torch.save(net.state_dict(), f"best-{epoch}.pt")
        dist.barrier()


def rank_of(rank, world, options):
    dist.init_process_group("gloo", "file:///tmp/meeting", world_size=world, rank=rank)
    torch.manual_seed(0)
    net, loader, best = DistributedDataParallel(nn.Linear(1, 1)), loader_of(options), 0.0
    for epoch in range(3):
        learn(net, torch.ones(4, 1))
        found = score(net.module, loader)
        dist.all_reduce(found)
        if found > best:
            best = found
            if rank == 0:
                torch.save(net.module.state_dict(), f"best-{epoch}.pt")
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--several", type=int, default=1)
    options = parser.parse_args()
    world = torch.cuda.device_count()
    if options.several and world > 1:
        mp.spawn(rank_of, nprocs=world, args=(world, options))
    else:
        alone(options)


if __name__ == "__main__":
    main()
