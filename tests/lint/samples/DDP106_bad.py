import os

import torch
import torch.distributed as dist


def bind():
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)  # <-- DDP106
    device = torch.device(f"cuda:{dist.get_rank()}")  # <-- DDP106
    del os.environ["CUDA_VISIBLE_DEVICES"]  # <-- DDP106
    return device
