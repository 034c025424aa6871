"""Thin layer over torch.distributed so that the rest also runs on one process."""
import functools

import torch
import torch.distributed as dist


def ready():
    return dist.is_available() and dist.is_initialized()


def rank():
    return dist.get_rank() if ready() else 0


def world():
    return dist.get_world_size() if ready() else 1


def alone_is_identity(fn):
    @functools.wraps(fn)
    def inner(t, *a, **k):
        return fn(t, *a, **k) if world() > 1 else t
    return inner


@alone_is_identity
def total(t):
    t = t.clone()
    dist.all_reduce(t)
    return t


@alone_is_identity
def rows(t):
    """Rows of all processes below each other; the counts may differ."""
    n = torch.tensor([len(t)])
    counts = [torch.zeros_like(n) for _ in range(world())]
    dist.all_gather(counts, n)
    counts = torch.cat(counts).tolist()
    room = t.new_zeros(max(counts), *t.shape[1:])
    room[:len(t)] = t
    slots = [torch.empty_like(room) for _ in range(world())]
    dist.all_gather(slots, room)
    return torch.cat([s[:c] for s, c in zip(slots, counts)])


def only_first(fn):
    @functools.wraps(fn)
    def inner(*a, **k):
        if rank() == 0:
            return fn(*a, **k)
    return inner
