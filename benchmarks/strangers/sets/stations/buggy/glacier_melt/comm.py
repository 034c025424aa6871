"""Small collection of gradient helpers shared by our melt models."""
import torch
import torch.distributed as dist
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors


def sync_initial(module):
    for t in list(module.parameters()) + list(module.buffers()):
        dist.broadcast(t.data, src=0)


def buckets_of(tensors, limit):
    bucket, size = [], 0
    for t in tensors:
        if bucket and size + t.numel() > limit:
            yield bucket
            bucket, size = [], 0
        bucket.append(t)
        size += t.numel()
    if bucket:
        yield bucket


def average_gradients(module, limit=1 << 16):
    world = dist.get_world_size()
    grads = []
    for p in module.parameters():
        if p.grad is not None:
            grads.append(p.grad)
    for bucket in buckets_of(grads, limit):
        flat = _flatten_dense_tensors(bucket)
        flat.div_(world)
        dist.all_reduce(flat)
        for grad, synced in zip(bucket, _unflatten_dense_tensors(flat, bucket)):
            grad.copy_(synced)


@torch.no_grad()
def mean_scalar(value):
    t = torch.tensor([float(value)])
    dist.all_reduce(t)
    return t.item() / dist.get_world_size()
