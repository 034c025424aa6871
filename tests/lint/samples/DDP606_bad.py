import torch
import torch.distributed as dist


def angle(u, v):
    return torch.acos((u * v).sum(-1))  # <-- DDP606


def step(u, v):
    angle(u, v).mean().backward()
    dist.all_reduce(u.grad)
