"""Trains on the device of its local rank, and says so twice."""

import os

import torch
import torch.distributed as dist
from data import batches
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 2)

    def forward(self, batch):
        return self.head(batch)


def main():
    dist.init_process_group("nccl")
    number = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(number)
    device = torch.device("cuda", number)
    net = Net().to(device)
    net = DistributedDataParallel(net)
    net.to(device)
    optimizer = torch.optim.Adam(net.parameters())
    for batch in batches():
        optimizer.zero_grad()
        net(batch.to(device)).sum().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
