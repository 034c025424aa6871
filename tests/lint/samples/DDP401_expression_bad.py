from torch import distributed as dist


def total(value, is_master):
    is_master and dist.barrier()  # <-- DDP401
    return dist.all_reduce(value) if dist.get_rank() == 0 else None  # <-- DDP401
