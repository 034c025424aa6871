import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def build():
    return nn.Linear(4, 1)


def try_out():
    if dist.get_rank() == 0:
        model = build()
        model(torch.randn(2, 4)).sum().backward()
    dist.barrier()


def main(batches):
    dist.init_process_group("gloo")
    try_out()
    model = DDP(build())
    for batch in batches:
        model(batch).sum().backward()


if __name__ == "__main__":
    main([torch.randn(2, 4)])
