"""Primitives for multi-process communication (detectron2 flavour)."""
import functools

import torch
import torch.distributed as dist


def get_world_size() -> int:
    if not dist.is_available() or not dist.is_initialized():
        return 1
    return dist.get_world_size()


def get_rank() -> int:
    if not dist.is_available() or not dist.is_initialized():
        return 0
    return dist.get_rank()


def is_main_process() -> bool:
    return get_rank() == 0


def synchronize():
    if get_world_size() == 1:
        return
    dist.barrier()


def all_gather(data):
    """Gather any picklable object; returns a list with one entry per rank."""
    if get_world_size() == 1:
        return [data]
    output = [None for _ in range(get_world_size())]
    dist.all_gather_object(output, data)
    return output


def all_reduce_mean(x: torch.Tensor) -> torch.Tensor:
    if get_world_size() == 1:
        return x
    x = x.clone()
    dist.all_reduce(x)
    return x / get_world_size()


def master_only(func):
    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        if is_main_process():
            return func(*args, **kwargs)
        return None
    return wrapper
