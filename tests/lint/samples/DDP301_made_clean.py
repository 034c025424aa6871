"""Which of two layers there is, is decided once, where they are made."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

GROUPS = {}


def share(name, ranks_of_all):
    for ranks in ranks_of_all:
        group = dist.new_group(ranks)
        if dist.get_rank() in ranks:
            GROUPS[name] = group


def size_of(name):
    if not dist.is_initialized() or name not in GROUPS:
        return 1
    return dist.get_world_size(group=GROUPS[name])


class Wide(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.inner = nn.Linear(size, size)

    def forward(self, x):
        return x + self.inner(x)


class Net(nn.Module):
    def __init__(self, size):
        super().__init__()
        if size_of("tensor") > 1:
            self.mix = Wide(size)
        else:
            self.mix = nn.Linear(size, size)
        self.head = nn.Linear(size, 1)

    def forward(self, x):
        return self.head(self.mix(x))


def main(halves):
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    share("tensor", halves)
    net = DistributedDataParallel(Net(8).cuda())
    for batch in torch.rand(10, 4, 8):
        net(batch.cuda()).mean().backward()


if __name__ == "__main__":
    main(torch.load("halves.pt"))
