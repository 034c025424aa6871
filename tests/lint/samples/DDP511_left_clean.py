import torch
import torch.distributed as dist


def write(state, path):
    if dist.get_rank() != 0:
        return
    try:
        torch.save(state, path)
    except OSError as error:
        print("not saved:", error)
        return
    print("saved", path)


def save(state, path):
    write(state, path)
    dist.barrier()
