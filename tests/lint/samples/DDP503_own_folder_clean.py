"""Each rank keeps its part of the state in a file of its own, and goes on from it."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def save(path, state):
    torch.save(state, path + ".new")
    os.replace(path + ".new", path)


def main():
    dist.init_process_group("gloo")
    path = f"state/{dist.get_rank()}.pt"
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    first = 0
    if os.path.exists(path):
        state = torch.load(path)
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["epoch"] + 1
    first = torch.tensor(first)
    dist.all_reduce(first, dist.ReduceOp.MIN)
    model = DistributedDataParallel(net)
    for epoch in range(int(first), 10):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).mean().backward()
        optimizer.step()
        own = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
        save(path, own)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
