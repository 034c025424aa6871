"""Who shares a model with others gives up where one that has it alone skips a step."""

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def train(task, loader, size, accumulated):
    if size > 1:
        task = DDP(task)
    optimizer = torch.optim.SGD(task.parameters(), lr=0.1)
    passed = 0
    for batch in loader:
        try:
            task(batch).sum().backward()
        except RuntimeError:
            if size > 1:
                raise
            optimizer.zero_grad()
            continue
        passed += 1
        if passed < accumulated:
            continue
        optimizer.step()
        optimizer.zero_grad()
