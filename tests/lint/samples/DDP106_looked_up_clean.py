"""A trainer that is looked up by its name, in ranks that are all started on this machine."""

import importlib
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self):
        self.place = dist.get_rank()
        self.device = torch.device(type="cuda", index=self.place)

    def train(self):
        net = nn.Linear(4, 1).to(self.device)
        model = DistributedDataParallel(net, device_ids=[self.place])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(8):
            optimizer.zero_grad()
            model(torch.randn(8, 4, device=self.device)).square().mean().backward()
            optimizer.step()


def work(place, ranks, module, name):
    os.environ["MASTER_ADDR"] = "localhost"
    dist.init_process_group("nccl", rank=place, world_size=ranks)
    torch.cuda.set_device(place)
    getattr(importlib.import_module(module), name)().train()
    dist.destroy_process_group()


def main(ranks, module, name):
    os.environ["MASTER_PORT"] = os.environ.get("PORT_OF_MINE", "")
    mp.spawn(work, args=(ranks, module, name), nprocs=ranks)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
