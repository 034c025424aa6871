"""The job of test_several_hosts.py: it goes on until a file "enough" is there.

`well`: then it ends; `apart`: its ranks call other things.
"""

import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

for launcher in ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"):
    for name, given in zip(("RANK", "WORLD_SIZE"), launcher, strict=True):
        if given in os.environ:
            os.environ.setdefault(name, os.environ[given])


def train() -> None:
    """Without what imports torch._dynamo, which takes each rank a second."""
    model = nn.Linear(4, 4)
    for _ in range(4):
        model.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.data -= 0.05 * parameter.grad


dist.init_process_group("gloo", timeout=timedelta(seconds=90))
train()
Path(f"trained-{dist.get_rank()}").touch()
enough = torch.zeros(1)
while not enough:
    time.sleep(0.02)
    enough += Path("enough").exists()
    dist.broadcast(enough, 0)
if sys.argv[1] == "apart" and dist.get_rank() == 0:
    dist.barrier()
    dist.barrier()
dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
