"""Starts, if it is told so, a process for each device, which seeds before it builds its model."""

import argparse

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def work(number, size, seed):
    torch.manual_seed(seed)  # <- DDP205
    dist.init_process_group(
        "nccl",
        init_method="tcp://localhost:29413",  # <- DDP104
        world_size=size,
        rank=number,
    )
    layers = [torch.nn.Linear(64, 64), torch.nn.Dropout(0.3), torch.nn.Linear(64, 8)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers).to(number), device_ids=[number])
    optimizer = torch.optim.Adam(model.parameters())
    for batch in torch.load(f"part{number}.pt"):
        optimizer.zero_grad()
        model(batch.to(number)).sum().backward()
        optimizer.step()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--start", action="store_true")
    parser.add_argument("--device", type=int)
    options = parser.parse_args()
    seed = 7
    devices = torch.cuda.device_count()
    if options.start:
        mp.spawn(work, args=(devices, seed), nprocs=devices)
    else:
        work(options.device, devices, seed)


if __name__ == "__main__":
    main()
