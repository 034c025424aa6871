import torch
import torch.distributed as dist


def save(state, path):
    saved = [True]
    if dist.get_rank() == 0:
        try:
            torch.save(state, path)
        except OSError:
            saved = [False]
    dist.broadcast_object_list(saved, src=0)
    return saved[0]


def save_at_the_end(state, path):
    if dist.get_rank() == 0:
        try:
            torch.save(state, path)
        except OSError:
            return False
    return True
