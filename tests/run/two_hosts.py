"""What the job of test_several_hosts.py does: `well`, or `apart` (its ranks call other things)."""

import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo", timeout=timedelta(seconds=6))
model = DistributedDataParallel(nn.Linear(4, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    optimizer.zero_grad()
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()
if sys.argv[1] == "apart" and dist.get_rank() == 0:
    dist.barrier()
    dist.barrier()
dist.all_reduce(torch.ones(1))
del model, optimizer
dist.destroy_process_group()
