import torch.distributed as dist

OF_THIS_HOST = None


def number():
    if OF_THIS_HOST is None:
        return dist.get_rank()
    return dist.get_rank(group=OF_THIS_HOST)
