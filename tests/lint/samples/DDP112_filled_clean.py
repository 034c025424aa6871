import argparse
import os
from multiprocessing import Process

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def work(rank, size, options):
    os.environ["MASTER_ADDR"] = options.host
    os.environ["MASTER_PORT"] = "6020"  # <- DDP104
    torch.cuda.set_device(options.local_rank)
    dist.init_process_group("nccl", init_method="env://", rank=rank, world_size=size)
    DDP(torch.nn.Linear(2, 2).cuda(), device_ids=[options.local_rank])
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", type=str, default="127.0.0.1")
    parser.add_argument("--local_rank", type=int, default=0, help="number within the node")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    ranks = []
    for number in range(options.processes):
        options.local_rank = number
        ranks.append(Process(target=work, args=(number, options.processes, options)))
        ranks[-1].start()
    for each in ranks:
        each.join()
