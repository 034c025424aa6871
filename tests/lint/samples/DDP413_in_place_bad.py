"""Wraps some of its modules, in whatever order, and wraps them so."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Brain:
    def __init__(self, modules, wrapped=None):
        self.modules = torch.nn.ModuleDict(modules).to("cuda")
        self.wrapped = wrapped

    def wrap(self):
        names = set(self.modules) if self.wrapped is None else set(self.wrapped)
        for name in names:  # <-- DDP413
            module = DistributedDataParallel(self.modules[name])
            self.modules[name] = module


dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
brain = Brain({"encoder": torch.nn.Linear(2, 2), "decoder": torch.nn.Linear(2, 2)})
brain.wrap()
