import torch.distributed as dist


def reduce_all(metrics, extra):
    names = set(metrics) | {"loss"}
    for name in names:  # <-- DDP413
        dist.all_reduce(metrics[name])
    for name in {key for key in extra}:  # <-- DDP413
        dist.all_reduce(extra[name])
