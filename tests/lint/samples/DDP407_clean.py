import os
import time

import torch
import torch.distributed as dist


def statistics(data, cache, rank):
    if rank == 0:
        torch.save(data.mean(0), cache)
    dist.barrier()
    return torch.load(cache)


def statistics_by_signal(data, cache, signal, rank):
    if rank == 0:
        torch.save(data.mean(0), cache)
        signal.touch()
    while not os.path.exists(signal):
        time.sleep(0.1)
    return torch.load(cache)
