import torch
import torch.distributed as dist


def statistics(data, cache, rank):
    if rank == 0:
        torch.save(data.mean(0), cache)
    dist.barrier()
    return torch.load(cache)
