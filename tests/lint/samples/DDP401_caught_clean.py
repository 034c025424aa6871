"""Ranks that raise what is caught meet the others behind it."""

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
    except ValueError as error:
        print(error)
    dist.barrier()
    with contextlib.suppress(LookupError):
        if rank == 0:
            raise KeyError("no such name")
    dist.barrier()
    match dist.get_backend():
        case "gloo":
            dist.barrier()
        case _:
            print(rank)
    match "gloo":
        case "nccl":
            if rank == 0:
                dist.barrier()
        case _:
            dist.barrier()
    try:
        if rank == 0:
            raise Odd
    except (Gone, Odd):
        pass
    dist.barrier()
    try:
        if rank == 0:
            raise Gone("data")
    except OSError:
        pass
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
