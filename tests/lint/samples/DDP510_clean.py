import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def build(net, path, rank):
    net.load_state_dict(torch.load(path, map_location="cpu"))
    if rank == 0:
        print(torch.load(path))
    return DDP(net)
