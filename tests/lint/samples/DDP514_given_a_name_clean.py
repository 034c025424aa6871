"""The run is named by the clock of each rank, unless the user names it: all may make the folder."""

import argparse
import os
from datetime import datetime

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs", default="logs")
    parser.add_argument("--name", default=None)
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    if options.name is None:
        options.name = datetime.now().strftime("%Y_%m_%d-%H_%M_%S")
    dist.init_process_group("gloo")
    folder = os.path.join(options.logs, options.name, "notes")
    if not os.path.exists(folder):
        os.makedirs(folder, exist_ok=True)
    model = DistributedDataParallel(nn.Linear(8, 1))
    learner = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(options.steps):
        loss = model(torch.randn(16, 8)).square().mean()
        learner.zero_grad()
        loss.backward()
        learner.step()
        with open(os.path.join(folder, f"rank-{dist.get_rank()}.txt"), "a") as file:
            print(step, loss.item(), file=file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
