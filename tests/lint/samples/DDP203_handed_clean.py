import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils import data


def data_sampler(dataset, shuffle, distributed):
    if distributed:
        return data.distributed.DistributedSampler(dataset, shuffle=shuffle)
    return data.RandomSampler(dataset)


def sample_data(loader):
    epoch = 0
    while True:
        if hasattr(loader.sampler, "set_epoch"):
            loader.sampler.set_epoch(epoch)
        epoch += 1
        for batch in loader:
            yield batch


def train(loader, model, n):
    loader = sample_data(loader)
    for idx in range(n):
        batch = next(loader)
        if idx % 2:
            rows = batch.flip(0)
        else:
            rows = batch
        model(rows).sum().backward()


if __name__ == "__main__":
    distributed = int(os.environ["WORLD_SIZE"]) > 1
    if distributed:
        dist.init_process_group("nccl")
    model = nn.Linear(4, 1)
    if distributed:
        model = DistributedDataParallel(model)
    dataset = [torch.ones(4)] * 8
    sampler = data_sampler(dataset, shuffle=True, distributed=distributed)
    loader = data.DataLoader(dataset, batch_size=2, sampler=sampler)
    train(loader, model, 100)
