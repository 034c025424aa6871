import torch.distributed as dist


def send(x, peer):
    dist.isend(x, peer)  # <-- DDP414
    dist.all_reduce(x, async_op=True)  # <-- DDP414
    work = dist.broadcast(x, 0, async_op=True)  # <-- DDP414
    return x
