"""The remainder by the number of GPUs of a host is 0 on one rank of each host."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def is_first(number):
    return dist.get_rank() % number == 0


def save(model, settings, path):
    if not is_first(settings.GPUS):
        return
    torch.save(model.module.state_dict(), path)  # <-- DDP502


def train(settings, model, path):
    dist.init_process_group("nccl")
    save(DDP(model), settings, path)
