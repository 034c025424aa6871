import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def work(options):
    dist.init_process_group("nccl")
    place = torch.device("cuda", options.local_rank)
    torch.cuda.set_device(place)
    net = DistributedDataParallel(nn.Linear(3, 1).to(place), device_ids=[place])
    learner = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(10):
        learner.zero_grad()
        net(torch.randn(4, 3, device=place)).mean().backward()
        learner.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=0)  # <-- DDP112
    options = parser.parse_args()
    if "LOCAL_RANK" not in os.environ:
        os.environ["LOCAL_RANK"] = str(options.local_rank)
    work(options)
