"""Rank 0 tries out rates on a bare copy of the model alone, which nobody else has."""

import copy

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


class RangeTest:
    def __init__(self, model, low=1e-5, high=1.0):
        self.model, self.low, self.high = model, low, high
        self.kept = copy.deepcopy(model.state_dict())

    def __call__(self, loader):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=self.low)
        trace = []
        for x, y in loader:
            loss = F.cross_entropy(self.model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            trace.append((loss.item(), optimizer.param_groups[0]["lr"]))
            optimizer.param_groups[0]["lr"] *= 1.5
            if optimizer.param_groups[0]["lr"] > self.high:
                break
        self.model.load_state_dict(self.kept)
        return min(trace)[1]


def main(dataset):
    dist.init_process_group("nccl")
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler)
    model = DDP(torch.nn.Linear(8, 2))
    rate = torch.zeros(1)
    if dist.get_rank() == 0:
        rate[0] = RangeTest(copy.deepcopy(model.module))(loader)
    dist.broadcast(rate, src=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate.item())
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


main(torch.load("data.pt"))
