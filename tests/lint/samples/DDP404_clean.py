import os

import torch.distributed as dist


def look(path):
    if not os.path.exists(path):
        raise FileNotFoundError(path)


def resume(path, rank):
    look(path)
    dist.barrier()


def resume_quietly(path, rank):
    found = [False]
    if rank == 0:
        found = [os.path.exists(path)]
    dist.broadcast_object_list(found, src=0)
    if not found[0]:
        raise FileNotFoundError(path)
