import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def work(net, parts):
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    while True:
        mine = [None]
        given = parts.pop() if dist.get_rank() == 0 else [None] * dist.get_world_size()
        dist.scatter_object_list(mine, given, src=0)
        if mine[0].mean() > 1.0:  # <-- DDP405
            break
        optimizer.zero_grad()
        model(mine[0]).mean().backward()
        optimizer.step()


def main(net, parts):
    dist.init_process_group("gloo")
    work(net, parts)
    dist.destroy_process_group()


main(torch.nn.Linear(4, 1), torch.load(sys.argv[1]))
