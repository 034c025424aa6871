from copy import deepcopy

import torch
import torch.distributed as dist
import torch.nn as nn


def is_primary(args):
    return args.rank == 0


def unwrap_model(model):
    return model.module if hasattr(model, "module") else model


def reduce_tensor(tensor, n):
    rt = tensor.clone()
    dist.all_reduce(rt, op=dist.ReduceOp.SUM)
    return rt / n


def distribute_bn(model, world_size, reduce=False):
    """Make the running statistics the same everywhere, averaged or those of rank 0."""
    for name, buf in unwrap_model(model).named_buffers(recurse=True):
        if "running_mean" in name or "running_var" in name:
            if reduce:
                dist.all_reduce(buf, op=dist.ReduceOp.SUM)
                buf /= float(world_size)
            else:
                dist.broadcast(buf, 0)


def accuracy(output, target):
    return (output.argmax(1) == target).float().mean() * 100


class AverageMeter:
    def __init__(self):
        self.sum = self.count = self.avg = 0

    def update(self, val, n=1):
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


class ModelEmaV2(nn.Module):
    def __init__(self, model, decay=0.9999):
        super().__init__()
        self.module = deepcopy(model).eval()
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        source = unwrap_model(model).state_dict().values()
        for ema_v, model_v in zip(self.module.state_dict().values(), source):
            if ema_v.dtype.is_floating_point:
                ema_v.mul_(self.decay).add_(model_v, alpha=1 - self.decay)
            else:
                ema_v.copy_(model_v)
