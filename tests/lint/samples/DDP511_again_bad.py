import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def keep(net, folder):
    """The ranks that have come through the barrier do not come back to it."""
    for number in range(3):
        try:
            if dist.get_rank() == 0:
                torch.save(net.state_dict(), os.path.join(folder, f"{number}.pt"))
            dist.barrier()  # <-- DDP511
        except OSError:
            time.sleep(1)


def once_more(net, folder):
    """Each attempt begins with something that the others are past."""
    while True:
        sizes = torch.ones(1)
        dist.all_reduce(sizes)
        try:
            if dist.get_rank() == 0:
                torch.save([net.state_dict(), sizes], os.path.join(folder, "sizes.pt"))
            dist.barrier()  # <-- DDP511
            return  # <-- DDP307
        except OSError:
            continue


def train(net, batches, steps):
    """What counts the steps is no end of the loop: the next one has another sum."""
    done = 0
    while done < steps:
        try:
            net(next(batches)).sum().backward()
            done += 1
        except RuntimeError:
            continue  # <-- DDP307


dist.init_process_group("gloo")
keep(torch.nn.Linear(4, 1), "kept")
once_more(torch.nn.Linear(4, 1), "kept")
train(DistributedDataParallel(torch.nn.Linear(4, 1)), iter([torch.ones(1, 4)] * 9), 8)
