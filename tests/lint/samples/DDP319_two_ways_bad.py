import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def first_try(net):
    dist.init_process_group("nccl")
    return nn.DataParallel(net)  # <-- DDP319


def second_try(net):
    dist.init_process_group("nccl")
    return DistributedDataParallel(net)
