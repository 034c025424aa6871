import torch.distributed as dist


def own_group(size):
    mine = None
    for first in range(0, dist.get_world_size(), size):
        group = dist.new_group(list(range(first, first + size)))
        if first <= dist.get_rank() < first + size:
            mine = group
    return mine


def one_each():
    return [dist.new_group([rank]) for rank in range(dist.get_world_size())]


def pair_of(rank):
    return dist.new_group([rank, rank + 1])


def all_pairs():
    return [pair_of(first) for first in range(0, dist.get_world_size(), 2)]
