"""Vectors of another number on each rank, sent round all at once, as learned codebooks are drawn."""

import torch
import torch.distributed as dist


def from_all(mine, counts):
    rank = dist.get_rank()
    parts = []
    for source, count in enumerate(counts):
        part = mine if source == rank else mine.new_empty(count, mine.shape[1])
        dist.broadcast(part, src=source, async_op=True)  # <-- DDP414
        parts.append(part)
    drawn = torch.cat(parts)
    print(rank, "has", len(drawn))
    return drawn


def summed(total, group):
    dist.all_reduce(total, group=group, async_op=True)  # <-- DDP414
    dist.barrier()
    return total / dist.get_world_size(group)


def divided(total):
    dist.all_reduce(total, async_op=True)  # <-- DDP414
    mean = total / dist.get_world_size()
    dist.barrier()
    return mean


def perhaps(total, last):
    dist.all_reduce(total, async_op=True)  # <-- DDP414
    if last:
        dist.barrier()
    return total


def sent(part, peer):
    dist.isend(part, peer)  # <-- DDP414
    dist.barrier()
