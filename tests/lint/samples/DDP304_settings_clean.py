"""Settings have defaults, which the command line may change: then nothing is trained."""

import argparse
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from yacs.config import CfgNode

DEFAULTS = CfgNode()
DEFAULTS.ONLY_LOOK = False
DEFAULTS.PARTS = 4


def settings(options):
    found = DEFAULTS.clone()
    if options.look:
        found.ONLY_LOOK = True
    found.freeze()
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--look", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--mode", default="train")
    options = parser.parse_args()
    if options.again:
        options.mode = "done"
    config = settings(options)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(8, 4))
    learner = torch.optim.SGD(model.parameters(), lr=0.1)
    if config.ONLY_LOOK:
        print(model)
        return
    if options.mode == "done":
        return
    for number in range(100):
        is_last = (number + 1) % config.PARTS == 0
        with nullcontext() if is_last else model.no_sync():
            model(torch.randn(16, 8)).mean().backward()
        if is_last:
            learner.step()
            learner.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
