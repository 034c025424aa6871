"""All ranks predict by an average of the weights, which rank 0 alone restores; a subclass somewhere trains."""

import copy
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Base:
    def __init__(self, options):
        self.options = options
        self.join()

    def join(self):
        dist.init_process_group("nccl")
        self.rank = int(os.environ["LOCAL_RANK"])
        torch.cuda.set_device(self.rank)

    def build(self):
        net = torch.nn.Linear(4, 1).cuda()
        self.model = DistributedDataParallel(net, device_ids=[self.rank])
        if self.options.average:
            self.shadow = copy.deepcopy(net)
            self.state = copy.deepcopy(net.state_dict())

    def use_average(self):
        if self.rank == 0:
            state = {key: value.clone() for key, value in self.state.items()}
            self.shadow.load_state_dict(state)  # <-- DDP513

    def predict(self, x):
        return self.shadow(x)

    def look(self, loader):
        self.use_average()
        if self.rank == 0:
            with torch.no_grad():
                return sum(self.shadow(x.cuda()).sum().item() for x in loader)
