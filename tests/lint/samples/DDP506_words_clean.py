import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.swa_utils import AveragedModel


class Trainer:
    def __init__(self):
        torch.manual_seed(7)
        net = nn.Linear(3, 3)
        self.smooth = AveragedModel(net)
        self.model = DistributedDataParallel(net)

    def step(self, x):
        self.model(x).sum().backward()
        self.smooth.update_parameters(self.model.module)


class Teacher:
    def __init__(self, path):
        net = nn.Linear(3, 3)
        net.load_state_dict(torch.load(path, map_location="cpu"))
        self.slow = copy.deepcopy(net)
        self.model = DistributedDataParallel(net)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Trainer().step(torch.ones(3))
    Teacher("net.pt")
