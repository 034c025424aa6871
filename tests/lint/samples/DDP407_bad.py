import time

import torch
import torch.distributed as dist


def statistics(data, cache, rank):
    if rank == 0:
        torch.save(data.mean(0), cache)
    return torch.load(cache)  # <-- DDP407


def watched(data, cache, rank):
    while dist.is_initialized():
        if rank == 0:
            torch.save(data.mean(0), cache)
        time.sleep(0.1)
        data = data - torch.load(cache)  # <-- DDP407


def reread(data, path, rank):
    if rank == 0:
        torch.save(data, path)
    while dist.is_initialized():
        time.sleep(0.1)
        data = torch.load(path)  # <-- DDP407
