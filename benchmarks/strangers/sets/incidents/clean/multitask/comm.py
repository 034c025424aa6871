import torch
import torch.distributed as dist


def world_size():
    return dist.get_world_size() if dist.is_initialized() else 1


def broadcast_params(module, src=0):
    for p in module.parameters():
        dist.broadcast(p.data, src=src)


def average_gradients(module):
    n = world_size()
    for p in module.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad, op=dist.ReduceOp.SUM)
        p.grad.div_(n)


def gather_scalar(value):
    t = torch.tensor([float(value)])
    out = [torch.zeros(1) for _ in range(world_size())]
    dist.all_gather(out, t)
    return [o.item() for o in out]
