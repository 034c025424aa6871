"""A process that ends with a failure is no loop that is left: the launcher ends the others."""

import math
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def checked(loss):
    if not math.isfinite(loss.item()):
        print("no number:", loss)
        sys.exit(3)  # <- DDP405
    return loss


def main(batches):
    dist.init_process_group("gloo")
    net = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for batch in batches[dist.get_rank() :: dist.get_world_size()]:
        optimizer.zero_grad()
        checked(net(batch).square().mean()).backward()
        optimizer.step()


if __name__ == "__main__":
    main([torch.randn(2, 4) for _ in range(64)])
