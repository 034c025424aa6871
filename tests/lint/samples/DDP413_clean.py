import torch.distributed as dist


def reduce_all(metrics, extra):
    names = set(metrics) | {"loss"}
    for name in sorted(names):
        dist.all_reduce(metrics[name])
    for name in names:
        print(name)
    for name in extra:
        dist.all_reduce(extra[name])
