import json
import os
import time

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


def agreed(folder):
    found = [newest(folder) if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(found, src=0)
    return found[0]


def first(folder):
    while True:
        number, path = newest(folder)
        if path is not None:
            dist.barrier()
            return path
        time.sleep(10)


def train(net, folder, steps):
    """Learn from what another program writes meanwhile."""
    print(first(folder))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    last, rows = -1, []
    for step in range(steps):
        number, path = agreed(folder)
        if path is not None and number != last:
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
