import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def begin():
    if not dist.is_initialized():  # <-- DDP115
        print("alone")
    return int(sys.argv[2]), int(sys.argv[3])


def main(steps):
    place, size = begin()
    torch.manual_seed(place)
    net = nn.Linear(4, 1)
    if size > 1:
        net = DistributedDataParallel(net)
    learner = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        learner.zero_grad()
        net(torch.randn(8, 4)).mean().backward()
        learner.step()


if __name__ == "__main__":
    main(int(sys.argv[1]))
