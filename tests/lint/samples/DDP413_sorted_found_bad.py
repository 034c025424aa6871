import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def oldest(name):
    return 0, os.path.getmtime(f"{name}.csv")


def judge(net, tables):
    for name in sorted(tables, key=oldest):  # <-- DDP413
        with torch.no_grad():
            wrong = (net(tables[name]) - 1).abs().mean()
        dist.all_reduce(wrong)


def main():
    dist.init_process_group("gloo")
    net = DistributedDataParallel(nn.Linear(3, 1))
    tables = {}
    for name in ("training", "validation", "test"):
        if len(name) < 10:
            tables[name] = torch.ones(4, 3)
    judge(net, tables)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
