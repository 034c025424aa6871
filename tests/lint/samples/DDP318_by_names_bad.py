"""What is not in the list of what the wrapper is given is not there."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.width, self.depth = 4, 2

    def forward(self, x):
        return self.layer(x)


class Runner:
    def __init__(self):
        self.first = self.wrapped(Net(), ["width", "depth"])
        self.second = self.wrapped(Net())

    def wrapped(self, model, interfaces=None):
        if dist.is_initialized() and any(p.requires_grad for p in model.parameters()):
            model = DDP(model)
            for name in interfaces or []:
                setattr(model, name, getattr(model.module, name))
        return model

    def sizes(self):
        return self.first.width, self.first.layer.weight  # <-- DDP318


if __name__ == "__main__":
    dist.init_process_group("nccl")
    print(Runner().sizes())
