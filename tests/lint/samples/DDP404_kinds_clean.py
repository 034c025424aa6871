"""Ranks that find a hole in their part of the data: they end, or tell the others, or raise."""

import os
import signal
import sys

import torch
import torch.distributed as dist


class DataError(Exception):
    pass


class Hole(DataError):
    pass


def looked_up(part):
    try:
        if part.isnan().any():
            raise KeyError("a hole")
        dist.all_reduce(part.sum())
    except IndexError:
        print("goes on")


def checked(part):
    try:
        if part.isnan().any():
            raise DataError
        dist.all_reduce(part.mean())
    except (OSError, DataError):
        os.kill(os.getpid(), signal.SIGKILL)


def told(part):
    try:
        if part.max() > 9:
            raise ValueError("too large")
        dist.all_reduce(part.max())
    except Exception as error:
        code = str(error)
    else:
        code = None
    if code is not None:
        print(code)
    return code


def held(part):
    try:
        try:
            if part.min() < 0:
                raise Hole
        except DataError:
            part = part.abs()
        dist.all_reduce(part)
    except Hole:
        print("never comes here")


def main():
    dist.init_process_group("gloo")
    part = torch.load("rows.pt", weights_only=True)[dist.get_rank() :: dist.get_world_size()]
    looked_up(part)
    checked(part)
    held(part)
    sys.exit(told(part))


if __name__ == "__main__":
    main()
