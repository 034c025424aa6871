"""What a distributed job does not refuse is done by all of its ranks."""

import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def draw(options, model, samples):
    if not options.distributed:
        print("one process alone")
    for number, each in enumerate(samples):
        folder = f"drawn/{number}"
        if not os.path.exists(folder):
            os.makedirs(folder)  # <-- DDP514
        print(model(each))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--launcher", default="none")
    options = parser.parse_args()
    if options.launcher == "none":
        options.distributed = False
    else:
        options.distributed = True
        dist.init_process_group("nccl")
    model = torch.nn.Linear(4, 4)
    if options.distributed:
        model = DDP(model)
    draw(options, model, torch.rand(8, 4))


if __name__ == "__main__":
    main()
