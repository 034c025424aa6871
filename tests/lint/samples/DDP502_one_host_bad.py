"""A job of several hosts has a local rank 0 on each of them."""

import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--launcher", default="none")
    options = parser.parse_args()
    options.local_rank = int(os.environ.get("LOCAL_RANK", 0))
    if options.launcher == "none":
        options.distributed = False
    else:
        options.distributed = True
        dist.init_process_group("nccl")
    if options.distributed:
        assert options.local_rank <= dist.get_rank()
    net = DDP(torch.nn.Linear(4, 1).cuda(), device_ids=[options.local_rank])
    net(torch.rand(8, 4).cuda()).square().mean().backward()
    if options.local_rank == 0:
        torch.save(net.module.state_dict(), "last.pt")  # <-- DDP502


if __name__ == "__main__":
    main()
