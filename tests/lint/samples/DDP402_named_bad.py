"""Who tells is decided by a number that nobody else has."""

import uuid

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    number = uuid.uuid4().int
    net = DistributedDataParallel(torch.nn.Linear(3, 1).cuda())
    for _ in range(10):
        loss = net(torch.rand(2, 3).cuda()).mean()
        if number % 2 == 0:  # <-- DDP402
            dist.all_reduce(loss.detach())


if __name__ == "__main__":
    main()
