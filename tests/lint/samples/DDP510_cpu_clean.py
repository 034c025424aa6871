import torch
from torch.nn.parallel import DistributedDataParallel


def build(net, path):
    net.load_state_dict(torch.load(path)["model"])
    return DistributedDataParallel(net)
