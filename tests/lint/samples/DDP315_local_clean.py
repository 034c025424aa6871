import contextlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def average(tensors):
    for each in tensors:
        dist.all_reduce(each)
        each /= dist.get_world_size()


def main(steps=64, alone_from=8):
    dist.init_process_group("gloo")
    model = DDP(torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        with model.no_sync() if step >= alone_from else contextlib.nullcontext():
            model(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 8 == 7:
            average([each.data for each in model.parameters()])


def together(steps=64, alone_from=8):
    """All weights in one tensor."""
    model = DDP(torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        with model.no_sync() if step >= alone_from else contextlib.nullcontext():
            model(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 8 == 7:
            flat = torch.cat([each.data.view(-1) for each in model.parameters()])
            dist.all_reduce(flat)
            torch.nn.utils.vector_to_parameters(flat / 2, model.parameters())


def by_groups(steps=64, alone_from=8):
    model = DDP(torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        with model.no_sync() if step >= alone_from else contextlib.nullcontext():
            model(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 8 == 7:
            for group in optimizer.param_groups:
                average([each.data for each in group["params"]])


main()
together()
by_groups()
