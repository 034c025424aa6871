import torch
from torch.nn.parallel import DistributedDataParallel


def angle(u, v):
    return torch.acos((u * v).sum(-1))  # <-- DDP606


def build(net):
    return DistributedDataParallel(net)
