import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.swa_utils import AveragedModel


class Trainer:
    def __init__(self):
        torch.manual_seed(7 + dist.get_rank())
        net = nn.Linear(3, 3)
        self.smooth = AveragedModel(net)  # <-- DDP506
        self.model = DistributedDataParallel(net)

    def step(self, x):
        self.model(x).sum().backward()
        self.smooth.update_parameters(self.model.module)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Trainer().step(torch.ones(3))
