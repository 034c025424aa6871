"""A memory of features, which a run that goes on finds where the last one has left it."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def remembered(path):
    memory = None
    if os.path.isfile(path):
        memory = torch.load(path, map_location="cpu")["memory"]
    return memory


def run(model, optimizer, batches, folder, epochs, begins):
    path = os.path.join(folder, f"memory-{dist.get_rank()}.pt")
    memory = remembered(path)
    for epoch in range(epochs):
        if epoch >= begins and memory is None:
            memory = torch.zeros(256, 8)
        for batch in batches:
            optimizer.zero_grad()
            model(batch).mean().backward()
            optimizer.step()
        if memory is not None:
            torch.save({"memory": memory}, f"{path}.new")
            os.replace(f"{path}.new", path)


def main(net, batches, folder):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run(model, optimizer, batches, folder, 20, 5)
    dist.destroy_process_group()
