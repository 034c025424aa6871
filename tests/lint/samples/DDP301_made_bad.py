"""Which of two layers takes part is decided by the batch."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class Wide(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.inner = nn.Linear(size, size)

    def forward(self, x):
        return x + self.inner(x)


class Net(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.wide = Wide(size)
        self.plain = nn.Linear(size, size)
        self.head = nn.Linear(size, 1)

    def forward(self, x):
        mix = self.wide if x.mean() > 0 else self.plain
        return self.head(mix(x))


def main(images):
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    net = DistributedDataParallel(Net(8).cuda())  # <-- DDP301
    for batch in DataLoader(images, 4, sampler=DistributedSampler(images)):
        net(batch.cuda()).mean().backward()


if __name__ == "__main__":
    main(torch.load("images.pt"))
