import os

import torch.distributed as dist
from torch.utils.data import DataLoader


def make(data, local_world_size):
    dist.barrier()
    return DataLoader(data, num_workers=os.cpu_count() // local_world_size)
