"""The number of the process is a setting of this name, and comes of the argument alone."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from yacs.config import CfgNode

_C = CfgNode()
_C.LOCAL_RANK = 0
_C.EPOCHS = 10


def settings(options):
    config = _C.clone()
    config.defrost()
    config.LOCAL_RANK = options.local_rank
    config.freeze()
    return config


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=0)  # <-- DDP112
    options, _ = parser.parse_known_args()
    config = settings(options)
    torch.cuda.set_device(config.LOCAL_RANK)
    dist.init_process_group("nccl")
    model = nn.Linear(4, 1).cuda()
    model = DistributedDataParallel(model, device_ids=[config.LOCAL_RANK])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(dist.get_rank())
    for _ in range(config.EPOCHS):
        optimizer.zero_grad()
        model(torch.randn(8, 4).cuda()).sum().backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
