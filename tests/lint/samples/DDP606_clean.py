import torch
import torch.distributed as dist


def angle(u, v):
    cosine = (u * v).sum(-1).clamp(-1 + 1e-7, 1 - 1e-7)
    return torch.acos(cosine)


def step(u, v):
    angle(u, v).mean().backward()
    dist.all_reduce(u.grad)
