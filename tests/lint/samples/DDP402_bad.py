import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def share(features, spread):
    if spread.max() > 3:  # <-- DDP402
        dist.all_reduce(features)
        return features
    parts = [torch.empty_like(features) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, features)
    return torch.cat(parts)


def train(net, x):
    return share(DDP(net)(x), x)


def settle(step):
    ragged = torch.ones(4, dist.get_rank() + 2)
    if ragged.mean() > 0.5 and step > 3:  # <-- DDP402
        dist.all_reduce(ragged.sum())
