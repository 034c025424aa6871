import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = nn.Linear(6, 3)
        self.teacher = nn.Linear(9, 3)

    def forward(self, both):
        truth = both[:, 6:]
        guess = self.own(both[:, :6])
        if truth.mean() > 0:
            return guess, self.teacher(both)
        return guess, None


def train(samples, number):
    dist.init_process_group("nccl")
    model = DistributedDataParallel(Net().cuda(number), device_ids=[number])  # <-- DDP301
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sampler = DistributedSampler(samples)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(samples, batch_size=8, sampler=sampler):
            guess, taught = model(torch.cat((x, y), 1).cuda(number))
            optimizer.zero_grad()
            (guess.mean() + taught.mean()).backward()
            optimizer.step()
