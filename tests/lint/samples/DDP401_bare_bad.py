import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def build():
    return nn.Linear(4, 1)


def try_out(model):
    if dist.get_rank() == 0:
        model(torch.randn(2, 4)).sum().backward()  # <-- DDP401
    dist.barrier()


def main(batches):
    dist.init_process_group("gloo")
    model = DDP(build())
    try_out(model)
    for batch in batches:
        model(batch).sum().backward()


if __name__ == "__main__":
    main([torch.randn(2, 4)])
