"""Vectors of another number on each rank, sent round all at once, as learned codebooks are drawn."""

import torch
import torch.distributed as dist


def from_all(mine, counts):
    rank = dist.get_rank()
    parts = []
    for source, count in enumerate(counts):
        part = mine if source == rank else mine.new_empty(count, mine.shape[1])
        dist.broadcast(part, src=source, async_op=True)
        parts.append(part)
    dist.barrier()
    return torch.cat(parts)


def summed(total, group):
    dist.all_reduce(total, group=group, async_op=True)
    dist.barrier(group=group)
    return total / dist.get_world_size(group)
