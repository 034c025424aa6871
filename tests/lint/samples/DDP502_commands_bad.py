"""One program of several commands: that which trains converts at its end."""

import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train(options):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(2, 2))
    for _ in range(options.steps):
        model(torch.ones(1, 2)).sum().backward()
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), options.file)
    dist.barrier()
    convert(options)


def convert(options):
    state = torch.load(options.file, map_location="cpu")
    torch.save({name: each.half() for name, each in state.items()}, "half.pt")  # <-- DDP502


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("file")
    parser.add_argument("--steps", type=int, default=10)
    chosen = parser.parse_args()
    if chosen.command == "train":
        train(chosen)
    elif chosen.command == "convert":
        convert(chosen)
