"""Starts its ranks itself, or trains alone where there is one device."""

import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def place(options):
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size(), False
    devices = torch.cuda.device_count()
    return options.number, devices, options.starter == "spawn" and devices > 1


def train(number, size, folder):
    if size > 1:
        dist.init_process_group(
            "nccl",
            init_method="tcp://localhost:29411",  # <- DDP104
            world_size=size,
            rank=number,
        )
    device = torch.device("cuda", number)
    model = torch.nn.Linear(8, 1).to(device)
    if size > 1:
        model = DistributedDataParallel(model, device_ids=[number])
    folder = os.path.join(folder, str(time.time()))
    path = os.path.join(folder, "last.pt")
    os.makedirs(folder, exist_ok=True)  # <-- DDP514
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        model(torch.randn(4, 8, device=device)).sum().backward()
        optimizer.step()
    if number == 0:
        torch.save(model.state_dict(), path)
    if size > 1:
        dist.barrier()
    model.load_state_dict(torch.load(path, map_location=device))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--number", type=int, default=0)
    parser.add_argument("--starter", default="spawn")
    options = parser.parse_args()
    options.number, size, starts = place(options)
    folder = "runs"
    if starts:
        mp.spawn(train, nprocs=size, args=(size, folder))
    else:
        train(0, size, folder)


if __name__ == "__main__":
    main()
