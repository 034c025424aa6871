import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main(checkpoint, loader, optimizer):
    dist.init_process_group("nccl")
    begin = 0
    try:
        name = os.path.basename(checkpoint)
        begin = int(os.path.splitext(name)[0])
    except ValueError:
        pass
    model = DistributedDataParallel(nn.Linear(4, 1))
    for step, batch in enumerate(loader):
        model(batch).sum().backward()
        optimizer.step()
        if (begin + step) % 16 == 0:
            norm = sum(each.square().sum() for each in model.parameters())
            (model(batch).sum() + torch.sqrt(norm)).backward()
            optimizer.step()
