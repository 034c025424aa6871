from contextlib import contextmanager

import torch.distributed as dist


@contextmanager
def main_process_first(rank):
    if rank != 0:
        dist.barrier()
    yield
    if rank == 0:
        dist.barrier()


def load(args):
    if args.local_rank not in [-1, 0]:
        dist.barrier()
    data = read(args)
    if args.local_rank == 0:
        dist.barrier()
    return data


def read(args):
    return args
