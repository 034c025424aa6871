from dataclasses import dataclass, replace

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


@dataclass
class Settings:
    processes: int = 4
    rank: int = 0
    seed: int = 1
    batch: int = 16


def reader(settings, samples):
    sampler = DistributedSampler(  # <-- DDP202
        samples, num_replicas=settings.processes, rank=settings.rank, seed=settings.seed
    )
    return DataLoader(samples, settings.batch, sampler=sampler)


def work(rank, settings, samples):
    settings = replace(settings, seed=settings.seed + 1)
    dist.init_process_group("gloo", rank=rank, world_size=settings.processes)
    model = DistributedDataParallel(nn.Linear(5, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = reader(settings, samples)
    for epoch in range(4):
        batches.sampler.set_epoch(epoch)
        for x in batches:
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.manual_seed(0)
    mp.spawn(work, args=(Settings(), torch.randn(640, 5)), nprocs=4)
