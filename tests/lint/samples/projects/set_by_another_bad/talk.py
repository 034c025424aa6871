import torch.distributed as dist

OF_THIS_HOST = None


def number():
    return dist.get_rank()
