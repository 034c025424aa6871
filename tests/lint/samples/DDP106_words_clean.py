import os

import torch
import torch.multiprocessing as mp
from torch import distributed as job
from torch.nn.parallel import DistributedDataParallel as Wrapped


class Place:
    def __init__(self):
        self.number = job.get_rank()
        self.gpu = int(os.environ["LOCAL_RANK"])
        self.spread = self.number % torch.cuda.device_count()


def start(net):
    job.init_process_group("nccl")
    where = Place()
    torch.cuda.set_device(where.gpu)
    return Wrapped(net.cuda(where.spread), device_ids=[where.spread])


def worker(index, size):
    # The ranks of mp.spawn are those of one machine.
    job.init_process_group(
        "nccl",
        "tcp://localhost:29400",  # <- DDP104
        rank=index,
        world_size=size,
    )
    torch.cuda.set_device(index)
    return Wrapped(torch.nn.Linear(2, 2).cuda(index), device_ids=[index])


if __name__ == "__main__":
    mp.spawn(worker, args=(2,), nprocs=2)
