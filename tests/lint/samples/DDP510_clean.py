import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def build(net, path):
    net.load_state_dict(torch.load(path, map_location="cpu"))
    return DDP(net.cuda())


def on_the_main_process(rank, path):
    if rank == 0:
        return torch.load(path)
    return None
