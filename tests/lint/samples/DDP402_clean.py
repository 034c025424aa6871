import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def share(features, spread):
    widest = spread.max()
    dist.all_reduce(widest, op=dist.ReduceOp.MAX)
    if widest.item() > 3:
        dist.all_reduce(features)
        return features
    parts = [torch.empty_like(features) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, features)
    return torch.cat(parts)


def train(net, x):
    return share(DDP(net)(x), x)


def settle(step):
    ragged = torch.ones(4, dist.get_rank() + 2).mean()
    dist.all_reduce(ragged)
    if ragged > 0.5 and step > 3:
        dist.all_reduce(ragged)
