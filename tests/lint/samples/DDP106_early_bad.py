"""Binds a device by the number that a helper gives, which asks the group if there is one."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def place():
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank()
    return int(os.environ.get("LOCAL_RANK", 0))


def main():
    dist.init_process_group("nccl")
    number = place()
    device = torch.device("cuda", number)  # <-- DDP106
    model = DistributedDataParallel(torch.nn.Linear(8, 1).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        model(torch.randn(4, 8, device=device)).sum().backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
