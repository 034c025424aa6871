import os
import torch
import torch.distributed as dist


def stats(opts, cache):
    flag = os.path.isfile(cache) if opts.rank == 0 else False  # <-- DDP513
    if opts.num_gpus > 1:
        dist.barrier()
    if flag:
        return torch.load(cache)
    dist.barrier()
    return 0
