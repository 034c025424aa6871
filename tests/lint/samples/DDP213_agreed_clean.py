"""Rank 0 numbers for all, and numbers are in one order everywhere."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def numbered(words, rank):
    told = [None]
    if rank == 0:
        told[0] = {word: number for number, word in enumerate(set(words))}
    dist.broadcast_object_list(told, src=0)
    return told[0]


def ranks_of(sizes):
    return {size: number for number, size in enumerate(set(sizes))}


def main(words):
    dist.init_process_group("gloo")
    number = numbered(words, dist.get_rank())
    place = ranks_of([len(words), 12, 40])
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Embedding(len(number), len(place)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for word in words[dist.get_rank() :: dist.get_world_size()]:
        optimizer.zero_grad()
        model(torch.tensor([number[word]])).square().mean().backward()
        optimizer.step()


if __name__ == "__main__":
    main(["so", "far", "so", "good"] * 8)
