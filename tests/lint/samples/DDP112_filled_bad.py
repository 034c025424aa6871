import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def work(local_rank, size, options):
    """What it is handed is the argument again."""
    options.local_rank = local_rank
    torch.cuda.set_device(options.local_rank)
    dist.init_process_group("nccl", rank=local_rank, world_size=size)
    DDP(torch.nn.Linear(2, 2).cuda(), device_ids=[options.local_rank])
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=-1)  # <-- DDP112
    options = parser.parse_args()
    work(options.local_rank, torch.cuda.device_count(), options)
