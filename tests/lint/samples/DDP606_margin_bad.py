import torch
import torch.distributed as dist


def turned(r, margin=1e-4):
    trace = torch.diagonal(r, dim1=-2, dim2=-1).sum(dim=-1)
    return torch.arccos((trace - 1) / 2)  # <-- DDP606


def between(u, v):
    return torch.acos(0.5 * (2 * u * v).sum(-1))  # <-- DDP606


def step(r, u, v):
    loss = turned(r).mean() + between(u, v).mean()
    loss.backward()
    dist.all_reduce(u.grad)
