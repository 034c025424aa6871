import torch
import torch.distributed as dist


def init():
    dist.init_process_group("gloo")


def rank():
    return dist.get_rank()


def world():
    return dist.get_world_size()


def is_primary():
    return rank() == 0


def summed(*values):
    t = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(t)
    return t.tolist()
