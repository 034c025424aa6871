import glob
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def newest(folder):
    found = sorted(glob.glob(os.path.join(folder, "g_*")))
    return found[-1] if found else None


def parts_of(folder, rank):
    if rank == 0:
        os.makedirs(folder, exist_ok=True)
    dist.barrier()
    return sorted(os.listdir(folder))


def main(folder):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    net = nn.Linear(4, 4)
    if rank == 0:
        os.makedirs(folder, exist_ok=True)
    last = None
    if os.path.isdir(folder):
        last: str | None = newest(folder)
    if last is not None:
        net.load_state_dict(torch.load(last, map_location="cpu"))
    print(parts_of(f"{folder}-parts", rank))
    return DistributedDataParallel(net)


main(sys.argv[1])
