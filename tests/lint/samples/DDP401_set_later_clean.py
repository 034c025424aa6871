"""What a module holds until it is set up says nothing of what it holds when others ask."""

import os

import torch
import torch.distributed as dist

_is_distributed = False
_rank = 0


def setup():
    global _is_distributed, _rank
    _is_distributed = "RANK" in os.environ
    if _is_distributed:
        dist.init_process_group("nccl")
        _rank = dist.get_rank()


def is_distributed():
    return _is_distributed


def save(model, path):
    if is_distributed() and _rank == 0:
        torch.save(model.state_dict(), f"{path}.tmp")
        os.replace(f"{path}.tmp", path)
    if is_distributed():
        dist.barrier()
