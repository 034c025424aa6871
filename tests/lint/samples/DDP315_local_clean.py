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


main()
