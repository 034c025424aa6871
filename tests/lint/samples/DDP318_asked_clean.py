"""Whether a model is wrapped is asked of somebody else's function."""

import torch
import torch.distributed as dist
from others.parallel import is_parallel
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(2, 2)

    def forward(self, batch):
        return self.head(batch)


def bare(model):
    return model.module if is_parallel(model) else model


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(Net())
    model(torch.ones(2)).sum().backward()
    print(bare(model).head.weight.norm(), bare(model))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
