"""The remainder by the number of hosts times that of their GPUs is the rank itself."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def is_first(number):
    return dist.get_rank() % number == 0


def save(model, settings, path):
    if not is_first(settings.GPUS * settings.HOSTS):
        return
    torch.save(model.module.state_dict(), path)


def train(settings, model, path):
    dist.init_process_group("nccl")
    save(DDP(model), settings, path)
