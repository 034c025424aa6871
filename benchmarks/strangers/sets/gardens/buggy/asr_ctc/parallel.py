import contextlib
import os

import torch.distributed as dist


def start():
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size()


@contextlib.contextmanager
def main_first():
    """Lets global rank 0 run the block before everybody else."""
    main = dist.get_rank() == 0
    if not main:
        dist.barrier()
    yield main
    if main:
        dist.barrier()


def sum_over_workers(t):
    dist.all_reduce(t, op=dist.ReduceOp.SUM)
    return t


def share_dir(path):
    box = [path]
    dist.broadcast_object_list(box, src=0)
    os.makedirs(box[0], exist_ok=True)
    return box[0]
