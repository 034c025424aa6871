"""Thin layer over torch.distributed that also works in one process."""
import datetime
import os

import torch
import torch.distributed as dist

_group = None


def start():
    global _group
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
        _group = dist.new_group(timeout=datetime.timedelta(minutes=2))


def group():
    return _group


def rank():
    return dist.get_rank() if dist.is_initialized() else 0


def world():
    return dist.get_world_size() if dist.is_initialized() else 1


def gather(x):
    if world() == 1:
        return x
    out = [torch.empty(x.shape, dtype=x.dtype) for _ in range(world())]
    dist.all_gather(out, x.contiguous(), group=_group)
    return torch.cat(out)


def stop():
    if dist.is_initialized():
        dist.destroy_process_group()
