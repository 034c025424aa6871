import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def shortest(name):
    return len(name)


def judge(net, tables):
    for name in sorted(tables, key=shortest):
        with torch.no_grad():
            wrong = (net(tables[name]) - 1).abs().mean()
        dist.all_reduce(wrong)


def main():
    dist.init_process_group("gloo")
    net = DistributedDataParallel(nn.Linear(3, 1))
    tables = {}
    for name in ("training", "validation", "test"):
        if os.path.exists(f"{name}.csv"):
            tables[name] = torch.ones(4, 3)
    judge(net, tables)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
