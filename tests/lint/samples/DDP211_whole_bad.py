import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

EPOCHS = 3


class Plan:
    def __init__(self, data, size):
        self.rounds = len(data) // size  # <-- DDP211
        self.all = EPOCHS * self.rounds

    def decay(self, optimizer):
        return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=self.all)


def one_cycle(optimizer, data, size):
    rounds = (len(data) + size - 1) // size  # <-- DDP211
    return torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 0.1, epochs=EPOCHS, steps_per_epoch=rounds
    )


def through(net, optimizer, schedule, loader):
    for (points,) in loader:
        net(points).mean().backward()
        optimizer.step()
        schedule.step()


def main(size):
    dist.init_process_group("gloo")
    data = TensorDataset(torch.randn(64, 4))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, size, sampler=sampler)
    net = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    plan = Plan(data, size).decay(optimizer)
    cycle = one_cycle(optimizer, data, size)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        through(net, optimizer, plan, loader)
        through(net, optimizer, cycle, loader)
    dist.destroy_process_group()


main(int(input()))
