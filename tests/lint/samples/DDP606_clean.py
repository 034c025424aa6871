import torch
from torch.nn.parallel import DistributedDataParallel


def angle(u, v):
    cosine = (u * v).sum(-1).clamp(-1 + 1e-7, 1 - 1e-7)
    return torch.acos(cosine)


def build(net):
    return DistributedDataParallel(net)
