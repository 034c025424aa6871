"""A run's folder, named by the time at which it begins."""

import datetime
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def begin(base, name):
    now = datetime.datetime.now()
    folder = os.path.join(base, f"{now:%y%m%d_%H%M}_{name}")
    os.makedirs(folder)  # <-- DDP514
    for part in ("weights", "curves"):
        os.makedirs(os.path.join(folder, part), exist_ok=True)
    notes = Path(base) / time.strftime("notes-%Y%m%d-%H%M%S")
    notes.mkdir(parents=True)  # <-- DDP514
    day = Path(base) / f"{now:%Y-%m-%d}"
    day.mkdir(parents=True)  # <-- DDP514
    apart = Path(base) / now.strftime("%H%M%S.%f")
    apart.mkdir(parents=True)
    mine = Path(base) / f"{now:%H%M}-{os.environ['RANK']}"
    mine.mkdir(parents=True)
    return folder


def main():
    dist.init_process_group("gloo")
    folder = begin("runs", "depth")
    net = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    began = time.time()
    for _ in range(10):
        optimizer.zero_grad()
        net(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()
    print(f"{time.time() - began:.1f} s")
    if dist.get_rank() == 0:
        torch.save(net.module.state_dict(), os.path.join(folder, "weights", "last.pt"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
