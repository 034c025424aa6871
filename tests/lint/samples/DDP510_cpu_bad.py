import torch
from torch.nn.parallel import DistributedDataParallel


def build(net, path, device):
    net.load_state_dict(torch.load(path)["model"])  # <-- DDP510
    return DistributedDataParallel(net.to(device))
