"""python train.py WHAT: a small training on two ranks, whoever starts them.

WHAT is well, hang, backward, crash, drift, long or init; spawn:WHAT starts the ranks itself.
"""

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def first_of(*names):
    return next((int(os.environ[name]) for name in names if name in os.environ), 0)


def steps_by_ddp(model):
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()  # in DDP's
        optimizer.step()
        yield step


def steps_by_hand(model):
    """Without what imports torch._dynamo, which takes each rank a second."""
    for step in range(4):
        model.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.data -= 0.05 * parameter.grad
        yield step


def train(rank, what):
    world = 3 if what == "init" else 2
    dist.init_process_group("gloo", rank=rank, world_size=world)
    model = nn.Linear(4, 1)
    steps = steps_by_ddp if what in ("well", "drift", "backward") else steps_by_hand
    for step in steps(model):
        if step == 1 and what in ("hang", "backward") and rank == 0:
            dist.barrier()  # the barrier
        if step == 1 and what == "crash" and rank == 1:
            raise ValueError("a bad sample")  # the crash
        if step == 1 and what == "drift" and rank == 1:
            model.bias.data.add_(1.0)  # the drift
        if step == 1 and what == "long":
            Path(f"trains-{rank}").touch()
            while True:
                time.sleep(0.05)
    os.write(1, f"rank {rank} trained\n".encode())
    dist.destroy_process_group()


def main():
    what = sys.argv[1]
    if what.startswith("spawn:"):
        mp.spawn(train, args=(what.removeprefix("spawn:"),), nprocs=2)
    else:
        train(first_of("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"), what)


if __name__ == "__main__":
    main()
