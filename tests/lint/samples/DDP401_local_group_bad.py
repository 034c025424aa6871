from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

_OF_THIS_HOST = None


def get_local_rank():
    if _OF_THIS_HOST is None:
        return dist.get_rank()
    return dist.get_rank(group=_OF_THIS_HOST)


@contextmanager
def first_of_the_host(rank=None):
    if rank is None:
        rank = get_local_rank()
    yield
    if rank == 0:
        dist.barrier()  # <-- DDP401


def main(host, per_host, hosts):
    global _OF_THIS_HOST
    dist.init_process_group("gloo")
    for i in range(hosts):
        group = dist.new_group(list(range(i * per_host, (i + 1) * per_host)))
        if i == host:
            _OF_THIS_HOST = group
    with first_of_the_host():
        model = torch.compile(torch.nn.Linear(3, 1))
    model = DistributedDataParallel(model)
    model(torch.ones(3)).sum().backward()


if __name__ == "__main__":
    import sys

    main(*map(int, sys.argv[1:]))
