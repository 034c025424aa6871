from torch import distributed as dist


def total(value, is_master):
    dist.barrier()
    dist.all_reduce(value)
    return value if is_master else None
