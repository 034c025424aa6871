import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class Log:
    def __init__(self, rank):
        self.on = rank == 0

    def begin(self, epoch, loader):
        if self.on:
            print("epoch", epoch, "of", len(loader))
            loader.sampler.set_epoch(epoch)
        else:
            loader.sampler.set_epoch(epoch)


def learn(data):
    dist.init_process_group("nccl")
    log = Log(dist.get_rank())
    loader = DataLoader(data, 16, sampler=DistributedSampler(data), drop_last=True)
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    steps = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(5):
        log.begin(epoch, loader)
        for rows in loader:
            steps.zero_grad()
            model(rows).mean().backward()
            steps.step()
