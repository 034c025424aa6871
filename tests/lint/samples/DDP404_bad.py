import os

import torch.distributed as dist


def look(path):
    if not os.path.exists(path):
        raise FileNotFoundError(path)  # <-- DDP404


def resume(path, rank):
    if rank == 0:
        look(path)
    dist.barrier()
