"""Each rank copies the code that is run into the run's folder."""

import argparse
import os
import shutil

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def copy_code(options):
    copied = os.path.join(options.logs, options.name, "code")
    if os.path.exists(copied):
        print(f"{copied} is there already: give the run another name")
        return
    here = os.path.dirname(os.path.realpath(__file__))
    ignored = shutil.ignore_patterns("logs", "wandb")
    shutil.copytree(here, copied, ignore=ignored)  # <-- DDP514


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs", default="logs")
    parser.add_argument("--name", required=True)
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    copy_code(options)
    model = DistributedDataParallel(nn.Linear(8, 1))
    learner = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(options.steps):
        loss = model(torch.randn(16, 8)).square().mean()
        learner.zero_grad()
        loss.backward()
        learner.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
