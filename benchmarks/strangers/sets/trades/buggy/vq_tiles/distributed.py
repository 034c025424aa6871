import torch
from torch import distributed as dist


def get_rank():
    if not dist.is_available() or not dist.is_initialized():
        return 0
    return dist.get_rank()


def get_world_size():
    if not dist.is_available() or not dist.is_initialized():
        return 1
    return dist.get_world_size()


def is_primary():
    return get_rank() == 0


def all_reduce(tensor, op=dist.ReduceOp.SUM):
    if get_world_size() == 1:
        return tensor
    dist.all_reduce(tensor, op=op)
    return tensor


def reduce_mean(values):
    t = torch.tensor(values, dtype=torch.float64)
    return (all_reduce(t) / get_world_size()).tolist()
