import glob
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def rows_of(name):
    if os.path.exists(name):
        return torch.load(name)
    return []


def main():
    dist.init_process_group("gloo")
    model = DDP(torch.nn.Linear(2, 2))
    parts = [rows_of(name) for name in glob.glob("sets/*.pt")]
    for rows in parts:
        for row in rows:
            model(row).sum().backward()


if __name__ == "__main__":
    main()
