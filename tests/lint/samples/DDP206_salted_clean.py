import zlib

import torch
import numpy as np
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset


def fold_of(stay, folds=5):
    patient = stay.split("-")[0]
    return zlib.crc32(patient.encode()) % folds


def split(ids, held_out=0):
    fold = np.array([fold_of(s) for s in ids])
    return np.flatnonzero(fold != held_out), np.flatnonzero(fold == held_out)


def main():
    dist.init_process_group("gloo")
    ids = np.array([f"P{i:04d}-{i}" for i in range(100)])
    x = torch.randn(100, 4, generator=torch.Generator().manual_seed(0))
    fit, val = split(ids)
    data = Subset(TensorDataset(x), fit)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    net = DDP(torch.nn.Linear(4, 8))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for (b,) in loader:
            net(b).mean().backward()
            opt.step()
            opt.zero_grad()


main()
