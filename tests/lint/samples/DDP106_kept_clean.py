import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


class Loop:
    def __init__(self, hosts):
        self.hosts = hosts

    def start(self):
        mp.spawn(begin, args=(self,), nprocs=torch.cuda.device_count())

    def total(self, counts):
        found = counts.to(torch.device("cuda", self.number))
        dist.all_reduce(found)
        return found


def begin(number, loop):
    rank = int(os.environ["HOST"]) * torch.cuda.device_count() + number
    dist.init_process_group("nccl", rank=rank, world_size=loop.hosts * 8)
    loop.number = number
