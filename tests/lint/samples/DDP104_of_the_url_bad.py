import argparse
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

os.environ["MASTER_ADDR"] = "localhost"
os.environ["MASTER_PORT"] = "29417"  # <- DDP104


def train(rank, ranks, args):
    dist.init_process_group("gloo", init_method=args.url, rank=rank, world_size=ranks)
    model = DistributedDataParallel(nn.Linear(2, 2))
    model(torch.full((1, 2), float(rank))).sum().backward()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", default="env://")
    args = parser.parse_args()
    mp.spawn(train, args=(2, args), nprocs=2)
