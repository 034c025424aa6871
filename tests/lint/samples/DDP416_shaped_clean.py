import torch
import torch.distributed as dist


def mean_on_root(values):
    values = values.clone().detach()
    dist.reduce(values, dst=0)
    means = torch.zeros(values.shape)
    if len(values.shape) == 2:
        for row in range(values.shape[0]):
            means[row] = values[row] / dist.get_world_size()
    return means if dist.get_rank() == 0 else None
