import logging

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def checkpoint(ddp, path):
    try:
        if not dist.get_rank():
            torch.save(ddp.module.state_dict(), path)
        dist.barrier()  # <-- DDP511
    except (OSError, RuntimeError):
        logging.exception("no checkpoint this time")


def main(net):
    dist.init_process_group("gloo")
    ddp = DistributedDataParallel(net)
    for step in range(100):
        ddp(torch.ones(1, 4)).sum().backward()
        if step % 10 == 9:
            checkpoint(ddp, "last.pt")


main(torch.nn.Linear(4, 1))
