import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def evaluate(net, rank):
    rows = load(rank)
    with torch.no_grad():
        return net(rows).mean()


def load(rank, evaluating=False):
    if rank != 0 and not evaluating:
        dist.barrier()
    if os.path.exists("rows.pt"):
        rows = torch.load("rows.pt")
    else:
        rows = torch.arange(12.0).reshape(4, 3)
    if rank == 0 and not evaluating:
        dist.barrier()
    return rows


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    net = DDP(torch.nn.Linear(3, 1))
    for _ in range(3):
        net(load(rank)).mean().backward()
    if rank == 0:
        print(evaluate(net.module, rank))  # <-- DDP401


if __name__ == "__main__":
    main()
