import os

import torch
import torch.distributed as dist

LAST = "last.pt"


def save(state):
    if dist.get_rank() == 0:
        torch.save(state, LAST)  # <-- DDP503


def resume():
    if os.path.exists(LAST):
        return torch.load(LAST, map_location="cpu")
    return None
