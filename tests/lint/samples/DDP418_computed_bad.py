"""Which rounds there are is computed of the samples of the rank."""

import sys

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def rounds_of(labels):
    return np.flatnonzero(labels.numpy() > 3).tolist()


def main(last):
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    net = DistributedDataParallel(torch.nn.Linear(3, 1).cuda())
    data = TensorDataset(torch.rand(99, 3), torch.rand(99))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    for epoch in range(last):
        sampler.set_epoch(epoch)
        for batch, labels in loader:
            net(batch.cuda()).mean().backward()
            todo = rounds_of(labels)
            if len(todo) > 0:  # <-- DDP418
                dist.barrier()


if __name__ == "__main__":
    main(int(sys.argv[1]))
