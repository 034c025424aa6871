"""Where it is asked for, every rank keeps an average to predict by, and the first alone takes it."""

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
        if self.options.average:
            self.shadow = copy.deepcopy(self.model.module)
            self.kept = copy.deepcopy(self.model.module.state_dict())

    def take_average(self):
        if self.options.average and not self.rank:
            self.shadow.load_state_dict(self.kept)  # <-- DDP513

    def score(self, loader):
        self.take_average()
        with torch.no_grad():
            return sum(self.shadow(x.cuda()).sum().item() for x in loader)
