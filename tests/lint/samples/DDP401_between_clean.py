"""Rank 0 first, then the others: nobody communicates in between, whatever may fail there."""

import torch
import torch.distributed as dist
from pieces import load


def loaded(path, attempts):
    for left in reversed(range(attempts)):
        try:
            pieces = load(path)
            if len(pieces) == 0:
                raise OSError("it is empty")
        except KeyboardInterrupt:
            raise
        except Exception:
            if not left:
                raise
        else:
            return pieces
    raise AssertionError


def main(path):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    table = torch.zeros(4)
    if rank == 0:
        dist.barrier()
    pieces = loaded(path, 10)
    if len(pieces) < 2:
        raise ValueError("nothing to train on")
    table += len(pieces)
    if rank != 0:
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main("pieces")
