import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def build(net, distributed):
    if distributed:
        dist.init_process_group("nccl")
        return DistributedDataParallel(net)
    return nn.DataParallel(net)
