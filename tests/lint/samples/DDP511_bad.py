import torch
import torch.distributed as dist


def save(state, path):
    if dist.get_rank() == 0:
        try:
            torch.save(state, path)
        except OSError:
            return False  # <-- DDP511
    dist.barrier()
    return True
