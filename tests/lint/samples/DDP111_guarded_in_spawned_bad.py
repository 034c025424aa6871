import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def join(rank, world_size):
    if dist.is_initialized():
        return
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "0")
    try:
        dist.init_process_group("gloo", rank=rank, world_size=world_size)
    except Exception as error:  # <-- DDP111
        print(f"training alone: {error}")


def worker(rank, world_size):
    join(rank, world_size)
    model = DistributedDataParallel(torch.nn.Linear(16, 2))
    model(torch.rand(4, 16)).sum().backward()


if __name__ == "__main__":
    mp.spawn(worker, args=(4,), nprocs=4)
