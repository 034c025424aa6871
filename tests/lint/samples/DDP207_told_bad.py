"""Nobody who deals out is told how many ranks there are."""

import sys

import torch
import torch.distributed as dist
from dealing import Cached, Feeder, dealt
from torch.nn.parallel import DistributedDataParallel


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    parts = dealt(data=sys.argv[1:])
    feeder = Feeder(Cached(data=parts[dist.get_rank()], rate=1.0), threads=4)
    net = DistributedDataParallel(torch.nn.Linear(3, 1).cuda())
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for batch in feeder:  # <-- DDP207
        optimizer.zero_grad()
        net(batch["image"].cuda()).mean().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
