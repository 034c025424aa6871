import torch
import torch.distributed as dist


def write(state, path):
    if dist.get_rank() != 0:
        return
    torch.save(state, path)


def save(state, path):
    try:
        write(state, path)
        dist.barrier()  # <-- DDP511
    except OSError as error:
        print("not saved:", error)
