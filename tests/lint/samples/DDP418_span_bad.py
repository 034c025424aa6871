import torch
import torch.distributed as dist


def reduced(table):
    rank, world = dist.get_rank(), dist.get_world_size()
    each = len(table) // world
    first = rank * each
    for row in range(first, first + each + rank):  # <-- DDP418
        dist.all_reduce(table[row])
    return table


def by_strides(table):
    for row in range(0, 64, dist.get_rank() + 1):  # <-- DDP418
        dist.all_reduce(table[row])
