"""Embeddings of all processes in one matrix."""
import torch
import torch.distributed as dist


def all_embeddings(z):
    parts = [torch.zeros_like(z) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, z.contiguous())
    return torch.cat(parts)
