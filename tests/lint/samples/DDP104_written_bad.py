import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

ADDRESS = "tcp://127.0.0.1:23457"  # <- DDP104


def by_url(rank, ranks):
    dist.init_process_group("gloo", init_method=ADDRESS, rank=rank, world_size=ranks)
    train(rank)


def by_environment(rank, ranks):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(29_511)  # <- DDP104
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    train(rank)


def train(rank):
    model = DistributedDataParallel(nn.Linear(2, 2))
    model(torch.full((1, 2), float(rank))).sum().backward()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(by_url if "--url" in sys.argv else by_environment, args=(2,), nprocs=2)
