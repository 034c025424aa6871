"""A total that is made anew at each batch of what it was, which the last round has summed."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class Mean:
    def __init__(self):
        self.total = torch.zeros(())

    def take(self, number):
        self.total = self.total + number
        dist.all_reduce(self.total)  # <-- DDP421


def main(data):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(8, 1))
    batches = DataLoader(data, 4, sampler=DistributedSampler(data, shuffle=False))
    mean = Mean()
    with torch.no_grad():
        for x, y in batches:
            mean.take((model(x) - y).abs().mean())
    print(mean.total / len(batches) / dist.get_world_size())


if __name__ == "__main__":
    main(torch.load("energies.pt"))
