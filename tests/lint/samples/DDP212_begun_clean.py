import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def features(path, rank):
    if rank != 0:
        dist.barrier()
    if os.path.exists(path):
        rows = torch.load(path)
    else:
        rows = torch.arange(96.0).reshape(8, 3, 4)
        if rank == 0:
            torch.save(rows, path)
    if rank == 0:
        dist.barrier()
    return rows


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    rows = features("cached.pt", rank)
    net = DDP(torch.nn.Linear(4, 1))
    for number in range(8):
        net(rows[number]).mean().backward()


if __name__ == "__main__":
    main()
