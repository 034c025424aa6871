"""Who joins as the rank that it has on its host is in a job of one host."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def join(number, ranks):
    dist.init_process_group("nccl", init_method="env://", rank=number, world_size=ranks)
    return torch.device(f"cuda:{number}")


def main():
    rank = int(os.environ["LOCAL_RANK"])
    device = join(rank, int(os.environ["WORLD_SIZE"]))
    net = DistributedDataParallel(torch.nn.Linear(4, 1).to(device), device_ids=[device])
    net(torch.rand(8, 4).to(device)).square().mean().backward()
    if rank == 0:
        torch.save(net.module.state_dict(), "last.pt")


if __name__ == "__main__":
    main()
