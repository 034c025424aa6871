"""Ranks that raise what is caught go on in the handler, or behind what is suppressed."""

import contextlib

import torch.distributed as dist

Gone = FileNotFoundError


class Odd(RuntimeError):
    pass


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    try:
        if rank % 2 == 1:
            raise ValueError("odd")
        dist.barrier()  # <-- DDP401
    except ValueError as error:
        print(error)
    with contextlib.suppress(LookupError):
        if rank == 0:
            raise KeyError("no such name")
        dist.barrier()  # <-- DDP401
    match rank:
        case 0 | 1:
            pass
        case _:
            dist.barrier()  # <-- DDP401
    try:
        if rank == 0:
            raise Odd
        dist.barrier()  # <-- DDP401
    except (Gone, Odd):
        pass
    try:
        if rank == 0:
            raise Gone("data")
        dist.barrier()  # <-- DDP401
    except OSError:
        pass
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
