"""As many ranks as a setting says, by which what is told is divided; and a loss that is scaled both ways."""

from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@dataclass
class Settings:
    processes: int = 4
    rate: float = 0.1


def shared(loss, number):
    if number > 1:
        dist.all_reduce(loss)
        loss = loss / number
    return loss


def work(rank, settings):
    dist.init_process_group(
        "gloo", "file:///shared/meeting", rank=rank, world_size=settings.processes
    )
    data = TensorDataset(torch.ones(64, 8), torch.zeros(64, 1))
    sampler = DistributedSampler(data)
    model = DistributedDataParallel(nn.Linear(8, 1))
    learner = torch.optim.SGD(model.parameters(), lr=settings.rate)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(data, 4, sampler=sampler):
            loss = nn.functional.mse_loss(model(x), y)
            learner.zero_grad()
            loss.backward()
            learner.step()
            told = shared(loss.detach().clone(), settings.processes)
            if rank == 0:
                print(told.item())
            grown = nn.functional.mse_loss(model(x), y) * settings.processes
            dist.all_reduce(grown)
            learner.zero_grad()
            (grown / settings.processes).backward()
            learner.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    told = Settings()
    mp.spawn(work, args=(told,), nprocs=told.processes)
