import functools
import os

import torch
import torch.distributed as dist


def setup():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")


def main_process():
    return int(os.environ.get("RANK", 0)) == 0


def main_only(fn):
    """The decorated function runs on the main process only."""

    @functools.wraps(fn)
    def inner(*args, **kwargs):
        if main_process():
            return fn(*args, **kwargs)

    return inner


def mean_of(value):
    t = torch.as_tensor(float(value))
    dist.all_reduce(t)
    return t.item() / dist.get_world_size()
