"""Starts what its settings say: the training, or what goes before it."""

import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from settings_things import read_settings
from torch.nn.parallel import DistributedDataParallel


def joined(number, size):
    dist.init_process_group(
        "nccl",
        init_method="tcp://localhost:29414",  # <- DDP104
        world_size=size,
        rank=number,
    )
    model = torch.nn.Linear(8, 1).to(number)
    return model, DistributedDataParallel(model, device_ids=[number])


def step(model, optimizer, number):
    optimizer.zero_grad()
    model(torch.randn(4, 8, device=number)).sum().backward()
    optimizer.step()


def prepare(number, size, folder):
    bare, model = joined(number, size)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        step(model, optimizer, number)
        if number == 0:
            torch.save(bare.state_dict(), f"{folder}/prepared.pt")


def train(number, size, folder):
    bare, model = joined(number, size)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(10):
        step(model, optimizer, number)
        if number == 0:
            torch.save(bare.state_dict(), f"{folder}/trained.pt")


if __name__ == "__main__":
    settings = read_settings(sys.argv[1])
    chosen = prepare if settings.word == "prepare" else train
    devices, folder = torch.cuda.device_count(), sys.argv[2]
    if settings.starts:
        mp.spawn(chosen, nprocs=devices, args=(devices, folder))
    else:
        chosen(0, devices, folder)
