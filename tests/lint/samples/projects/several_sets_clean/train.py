import os

import torch
import torch.distributed as dist
from data import loader
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(rank, world, port):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = port
    dist.init_process_group("gloo", rank=rank, world_size=world)
    batches, sampler = loader("Faces", world, rank, pattern="images/*.png")
    model = DistributedDataParallel(nn.Linear(2, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for images in batches:
            optimizer.zero_grad()
            model(images).mean().backward()
            optimizer.step()


if __name__ == "__main__":
    count = torch.cuda.device_count()
    torch.multiprocessing.spawn(train, args=(count, os.environ["PORT"]), nprocs=count)
