import os

import torch
import torch.distributed as dist
from sets import read
from torch.nn.parallel import DistributedDataParallel

from data import loaders


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    batches, _ = loaders(*read())
    model = DistributedDataParallel(torch.nn.Linear(4, 1).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        batches.sampler.set_epoch(epoch)
        for x, y in batches:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x.cuda()), y.cuda()).backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
