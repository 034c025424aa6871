import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD
from torch.optim.lr_scheduler import StepLR


def schedule_of(optimizer):
    return StepLR(optimizer, 10)


def go_on(file, net, optimizer, schedule):
    held = torch.load(file, map_location="cpu")
    net.module.load_state_dict(held["net"])
    optimizer.load_state_dict(held["optimizer"])
    schedule.load_state_dict(held["schedule"])
    return held["at"]


class Average:
    def __init__(self, net):
        self.net = net
        self.count = 0


class Job:
    """Restored where there is something, made where there is nothing."""

    def __init__(self, file, fresh):
        self.net = DistributedDataParallel(torch.nn.Linear(4, 1))
        self.optimizer = SGD(self.net.parameters(), lr=0.1)
        self.average = Average(self.net.module)
        if not fresh:
            self.restore(file)
        if fresh:
            self.optimizer = SGD(self.net.parameters(), lr=0.05)
        self.average = Average(self.net.module)

    def restore(self, file):
        held = torch.load(file, map_location="cpu")
        self.net.module.load_state_dict(held["net"])
        self.optimizer.load_state_dict(held["optimizer"])

    def step(self):
        self.net(torch.randn(2, 4)).mean().backward()
        self.optimizer.step()


def compared(files):
    """One after the other is measured."""
    net = torch.nn.Linear(4, 1)
    net.load_state_dict(torch.load(files[0]))
    before = net(torch.ones(1, 4))
    net = torch.nn.Linear(4, 1)
    net.load_state_dict(torch.load(files[1]))
    return before - net(torch.ones(1, 4))


def pair(file):
    """A teacher stays as it was stored, the student begins anew."""
    net = torch.nn.Linear(4, 1)
    net.load_state_dict(torch.load(file))
    teacher = net
    net = torch.nn.Linear(4, 1)
    return teacher, net


def main(file):
    dist.init_process_group("gloo")
    net = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = SGD(net.parameters(), lr=0.1)
    schedule = schedule_of(optimizer)
    at = 0
    if file:
        at = go_on(file, net, optimizer, schedule)
    else:
        schedule = schedule_of(optimizer)
    for _ in range(at, 9):
        net(torch.randn(2, 4)).mean().backward()
        optimizer.step()
        schedule.step()
    Job(file, not file).step()
    print(compared([file, file]), pair(file))
    dist.destroy_process_group()


main(input())
