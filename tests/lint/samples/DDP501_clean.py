import os

import torch
import torch.distributed as dist


def refresh(model, path):
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), path + ".tmp")
        os.replace(path + ".tmp", path)
    dist.barrier()
    return torch.load(path)


def other(model, path, start):
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), path)
    return torch.load(start)


def save_on_master(model, path):
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), path)
    dist.barrier()


def refresh_after(model, path):
    save_on_master(model, path)
    return torch.load(path)
