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


class Job:
    def __init__(self, file):
        self.net = DistributedDataParallel(torch.nn.Linear(4, 1))
        self.optimizer = SGD(self.net.parameters(), lr=0.1)
        held = torch.load(file, map_location="cpu")
        self.net.module.load_state_dict(held["net"])
        self.optimizer.load_state_dict(held["optimizer"])
        self.optimizer = SGD(self.net.parameters(), lr=0.05)  # <-- DDP509

    def step(self):
        self.net(torch.randn(2, 4)).mean().backward()
        self.optimizer.step()


def main(file):
    dist.init_process_group("gloo")
    net = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = SGD(net.parameters(), lr=0.1)
    schedule = schedule_of(optimizer)
    at = 0
    if file:
        at = go_on(file, net, optimizer, schedule)
    schedule = schedule_of(optimizer)  # <-- DDP509
    for _ in range(at, 9):
        net(torch.randn(2, 4)).mean().backward()
        optimizer.step()
        schedule.step()
    Job(file).step()
    dist.destroy_process_group()


main(input())
