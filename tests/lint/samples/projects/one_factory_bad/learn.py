import os

import torch
import torch.distributed as dist
from sets import read
from torch.nn.parallel import DistributedDataParallel

from data import loader


def fit(batches):
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    model = DistributedDataParallel(torch.nn.Linear(4, 1).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        batches.sampler.set_epoch(epoch)
        for x, y in batches:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x.cuda()), y.cuda()).backward()
            optimizer.step()
    return model


if __name__ == "__main__":
    dist.init_process_group("nccl")
    fit(loader(read("train")))
    dist.destroy_process_group()
