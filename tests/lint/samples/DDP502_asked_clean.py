"""What the job was asked for is written down by one rank, into one file."""

import argparse
import json

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", default="run")
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        with open(f"{options.folder}/options.json", "w") as file:
            json.dump(vars(options), file)
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(dist.get_rank())
    for _ in range(options.steps):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).sum().backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
