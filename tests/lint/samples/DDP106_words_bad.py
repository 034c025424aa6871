import os

import torch
from torch import distributed as job
from torch.nn.parallel import DistributedDataParallel as Wrapped

pin = torch.cuda.set_device


class Place:
    def __init__(self):
        self.number, self.size = self.both()

    def both(self):
        return job.get_rank(), job.get_world_size()


def start(net):
    job.init_process_group("nccl")
    where = Place()
    pin(where.number)  # <-- DDP106
    gpu = f"cuda:{where.number}"
    device = torch.device(gpu)  # <-- DDP106
    spare = "CUDA_VISIBLE_DEVICES"
    if spare in os.environ:
        del os.environ[spare]  # <-- DDP106
    return Wrapped(net.to(device), device_ids=[where.number])  # <-- DDP106
