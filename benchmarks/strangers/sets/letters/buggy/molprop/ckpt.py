import os

import torch
import torch.distributed as dist


def rank():
    return dist.get_rank()


def save(path, model, opt, epoch):
    if rank() == 0:
        torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "epoch": epoch}, path)
    dist.barrier()


def restore(path, model, opt):
    """Returns the epoch to start with; 0 if there is nothing to go on from."""
    found = [os.path.exists(path)]
    dist.broadcast_object_list(found, src=0)
    if not found[0]:
        return 0
    epoch = [None]
    if rank() == 0:
        blob = torch.load(path)
        model.load_state_dict(blob["model"])
        opt.load_state_dict(blob["opt"])
        epoch = [blob["epoch"] + 1]
    dist.broadcast_object_list(epoch, src=0)
    return epoch[0]
