import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Small:
    def __init__(self, options):
        self.several = options.several
        self.short = options.brief


class Large:
    def __init__(self, options):
        self.several = options.spread
        self.short = options.short


def main(options):
    kind = Small(options) if options.small else Large(options)
    if kind.several:
        dist.init_process_group("gloo")
    net = nn.Linear(3, 1)
    if kind.several:
        net = DistributedDataParallel(net)
    learner = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(10):
        learner.zero_grad()
        net(torch.randn(4, 3)).mean().backward()
        learner.step()
    if not kind.short:
        torch.save(net.state_dict(), "last.pt")  # <-- DDP502


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name in ("several", "spread", "brief", "short", "small"):
        parser.add_argument(f"--{name}", action="store_true")
    main(parser.parse_args())
