"""Who is not the first leaves early, both where the average is made and where it is used."""

import copy
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Averaging:
    def __init__(self, options):
        self.options = options
        dist.init_process_group("nccl")
        self.rank = int(os.environ["LOCAL_RANK"])
        torch.cuda.set_device(self.rank)

    def build(self):
        self.model = DistributedDataParallel(torch.nn.Linear(4, 1).cuda(), device_ids=[self.rank])
        self.begin_average()

    def begin_average(self):
        if self.rank != 0 or not self.options.average:
            return
        self.shadow = copy.deepcopy(self.model.module)
        self.kept = copy.deepcopy(self.model.module.state_dict())

    def take_average(self):
        if self.options.average and not self.rank:
            self.shadow.load_state_dict(self.kept)

    def score(self, loader):
        self.take_average()
        if self.rank == 0:
            with torch.no_grad():
                return sum(self.shadow(x.cuda()).sum().item() for x in loader)
