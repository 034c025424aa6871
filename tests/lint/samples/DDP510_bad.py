import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def build(net, path):
    net.load_state_dict(torch.load(path))  # <-- DDP510
    return DDP(net.cuda())
