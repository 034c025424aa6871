"""A trainer that is looked up by its name, in ranks of as many machines as there are."""

import importlib
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self):
        self.place = dist.get_rank()
        self.device = torch.device(type="cuda", index=self.place)

    def train(self):
        net = nn.Linear(4, 1).to(self.device)
        model = DistributedDataParallel(net, device_ids=[self.place])  # <-- DDP106
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(8):
            optimizer.zero_grad()
            model(torch.randn(8, 4, device=self.device)).square().mean().backward()
            optimizer.step()


def main(module, name):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    getattr(importlib.import_module(module), name)().train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
