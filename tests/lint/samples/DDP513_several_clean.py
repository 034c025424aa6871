import os
import torch
import torch.distributed as dist


def stats(opts, cache):
    flag = os.path.isfile(cache) if opts.rank == 0 else False
    if opts.num_gpus > 1:
        flag = torch.as_tensor(flag, dtype=torch.float32)
        dist.broadcast(flag, src=0)
        flag = float(flag) != 0
    if flag:
        return torch.load(cache)
    dist.barrier()
    return 0
