"""One process for each device of this machine."""

import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from judge import judge


def work(rank, ranks, weights):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ.setdefault("MASTER_PORT", "29500")
    dist.init_process_group("nccl", rank=rank, world_size=ranks)
    net = torch.nn.Linear(8, 1)
    net.load_state_dict(torch.load(weights, map_location="cpu"))
    print(judge(net))
    dist.destroy_process_group()


if __name__ == "__main__":
    ranks = torch.cuda.device_count()
    mp.spawn(work, args=(ranks, sys.argv[1]), nprocs=ranks)
