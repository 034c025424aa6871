import json
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def newest(folder):
    if not os.path.exists(folder):
        return -1, None
    numbers = [int(name[5:]) for name in os.listdir(folder) if name.startswith("part-")]
    if not numbers:
        return -1, None
    return max(numbers), os.path.join(folder, f"part-{max(numbers)}")


def train(net, folder, steps):
    """Learn from what another program writes meanwhile."""
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    last, rows = -1, []
    for step in range(steps):
        number, path = newest(folder)
        if path is not None and number != last:  # <-- DDP402
            with open(path) as file:
                rows = json.load(file)
            dist.barrier()
            last = number
        loss = model(torch.tensor(rows[step % len(rows)])).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


dist.init_process_group("gloo")
train(torch.nn.Linear(8, 1), "parts", 1000)
dist.destroy_process_group()
