import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def train(net, data, optimizer):
    model = DistributedDataParallel(net)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = (model(x) - y).square().mean()
            usable = torch.isfinite(loss.detach()).float()
            dist.broadcast(usable, 0)  # <-- DDP214
            if usable:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


class Guard:
    def __init__(self, limit):
        self.limit = limit

    def refuses(self, loss):
        told = torch.zeros(1)
        told.fill_(loss.item() > self.limit)
        dist.broadcast(told, src=0)  # <-- DDP214
        return told.item() > 0


class Fitting:
    def __init__(self, net, data):
        self.model = DistributedDataParallel(net)
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.guard = Guard(100.0)
        self.sampler = DistributedSampler(data)
        self.loader = DataLoader(data, batch_size=4, sampler=self.sampler)

    def epoch(self, number):
        self.sampler.set_epoch(number)
        for x in self.loader:
            self.optimizer.zero_grad()
            loss = self.model(x).square().mean()
            if self.guard.refuses(loss):
                continue
            loss.backward()
            self.optimizer.step()


def main(net, data, optimizer):
    dist.init_process_group("gloo")
    train(net, data, optimizer)
    fitting = Fitting(net, data)
    for number in range(3):
        fitting.epoch(number)
