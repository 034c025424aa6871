"""Who shares a model with others skips a step that they take."""

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def train(task, loader, size, accumulated):
    if size > 1:
        task = DDP(task)
    optimizer = torch.optim.SGD(task.parameters(), lr=0.1)
    passed = 0
    for batch in loader:
        try:
            task(batch).sum().backward()  # <-- DDP304
        except RuntimeError:
            if size < 1:
                raise
            optimizer.zero_grad()
            continue  # <-- DDP307
        passed += 1
        if passed % accumulated > 0:
            continue  # <-- DDP307
        optimizer.step()
        optimizer.zero_grad()
