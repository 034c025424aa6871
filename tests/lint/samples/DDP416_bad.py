import torch.distributed as dist


def train(loss, best):
    dist.reduce(loss, dst=0)  # <-- DDP416
    mean = loss / dist.get_world_size()
    if mean > best:
        return None
    return mean
