import torch
import torch.distributed as dist
from torch.utils.data import random_split


def split(data):
    dist.init_process_group("gloo")
    return random_split(data, [90, 10], generator=torch.Generator().manual_seed(0))
