"""Who joins as what the launcher says may be on one of several hosts."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def join(number):
    dist.init_process_group("nccl", init_method="env://")
    return torch.device(f"cuda:{number}")


def main():
    rank = int(os.environ["LOCAL_RANK"])
    device = join(rank)
    net = DistributedDataParallel(torch.nn.Linear(4, 1).to(device), device_ids=[device])
    net(torch.rand(8, 4).to(device)).square().mean().backward()
    if rank == 0:
        torch.save(net.module.state_dict(), "last.pt")  # <-- DDP502


if __name__ == "__main__":
    main()
