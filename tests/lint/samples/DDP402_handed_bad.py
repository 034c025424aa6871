import copy

import torch
import torch.distributed as dist
from torch import nn

from others import load_checkpoint


def main(path):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = nn.Linear(4, 4)
    average = None
    if rank == 0:
        average = copy.deepcopy(model).to(torch.float64)
    saved = load_checkpoint(path, model, rank)
    if saved["steps"] > 0:  # <-- DDP402
        dist.barrier()
    return average
