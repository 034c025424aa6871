import os

import torch
import torch.distributed as dist
from scores import statistics
from sets import batches
from torch.nn.parallel import DistributedDataParallel


def drawn(model):
    for _ in range(10):
        yield model.module(torch.rand(8, 4).cuda())


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    model = DistributedDataParallel(torch.nn.Linear(4, 1).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in batches():
        optimizer.zero_grad()
        model(x.cuda()).mean().backward()
        optimizer.step()
    print(statistics(drawn(model)))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
