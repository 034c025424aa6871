import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

EPOCHS = 3


class Plan:
    def __init__(self, data, size):
        self.rounds = len(data) // size // dist.get_world_size()
        self.all = EPOCHS * self.rounds

    def decay(self, optimizer):
        return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=self.all)


def one_cycle(optimizer, loader):
    rounds = len(loader)
    return torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 0.1, epochs=EPOCHS, steps_per_epoch=rounds
    )


def shared(optimizer, data, size, parts):
    """How many parts there are the caller knows."""
    rounds = len(data) // size // parts
    return torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=rounds)


def through(net, optimizer, schedule, loader):
    for (points,) in loader:
        net(points).mean().backward()
        optimizer.step()
        schedule.step()


def main(size, parts):
    dist.init_process_group("gloo")
    data = TensorDataset(torch.randn(64, 4))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, size, sampler=sampler)
    every = DataLoader(data, size)
    net = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    plan = Plan(data, size).decay(optimizer)
    cycle = one_cycle(optimizer, loader)
    slow = shared(optimizer, data, size, parts)
    other = torch.nn.Linear(4, 1)
    its = torch.optim.SGD(other.parameters(), lr=0.1)
    alone = torch.optim.lr_scheduler.CosineAnnealingLR(its, T_max=EPOCHS * (len(data) // size))
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for schedule in (plan, cycle, slow):
            through(net, optimizer, schedule, loader)
        if dist.get_rank() == 0:
            through(other, its, alone, every)
    dist.barrier()
    dist.destroy_process_group()


main(int(input()), int(input()))
