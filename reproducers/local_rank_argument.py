"""DDP112 local-rank-argument: a script expects --local_rank, which torchrun does not pass.

torchrun --nproc-per-node=4 reproducers/local_rank_argument.py broken
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

import torch
import torch.distributed as dist

from ddpdoctor.reproducer import backend, broken, documented, fix, main, own_device
from ddpdoctor.stack.process_group import session

TORCHRUN: Sequence[str] = ()
"""What torchrun adds to the script's arguments."""


def launch_py() -> Sequence[str]:
    """Return what `python -m torch.distributed.launch` adds since torch 2.0; _ for - before."""
    return (f"--local-rank={os.environ['LOCAL_RANK']}",)


def check(local_rank: int) -> None:
    """Assert that each rank of this host has a device of its own, and that the group works."""
    everywhere: list[int] = [local_rank] * dist.get_world_size()
    dist.all_gather_object(everywhere, local_rank)
    assert sorted(everywhere) == list(range(len(everywhere))), f"devices of the ranks: {everywhere}"
    total = torch.ones(1, device=own_device())
    dist.all_reduce(total)
    assert total.item() == len(everywhere), f"the sum over the ranks is {total.item()}"


@broken()
def demand_the_argument() -> None:
    """Demand --local_rank, as scripts for torch.distributed.launch did, and start with torchrun."""
    parser = argparse.ArgumentParser("train.py")
    parser.add_argument("--local_rank", type=int, required=True)  # <-- DDP112
    args = parser.parse_args(TORCHRUN)
    dist.init_process_group(backend())
    check(args.local_rank)
    dist.destroy_process_group()


@documented(source="skycrapers/TecoGAN-PyTorch#31, with torchrun")
def give_it_a_default() -> None:
    """Give --local-rank the default -1, or 0, and start with torchrun: one device for all."""
    parser = argparse.ArgumentParser("train.py")
    parser.add_argument("--local-rank", default=-1, type=int)
    args = parser.parse_args(TORCHRUN)
    dist.init_process_group(backend())
    check(args.local_rank)
    dist.destroy_process_group()


@documented(source="bigcode-project/starcoder#145")
def rename_the_argument() -> None:
    """Rename it --local-rank, and start with python -m torch.distributed.launch of torch 2."""
    parser = argparse.ArgumentParser("train.py")
    parser.add_argument("--local-rank", type=int, required=True)
    args = parser.parse_args(launch_py())
    dist.init_process_group(backend())
    check(args.local_rank)
    dist.destroy_process_group()


@documented(source="torch.distributed.launch's own warning")
def read_the_environment() -> None:
    """Drop the argument, and read LOCAL_RANK, which torchrun sets for every rank."""
    argparse.ArgumentParser("train.py").parse_args(TORCHRUN)
    dist.init_process_group(backend())
    check(int(os.environ["LOCAL_RANK"]))
    dist.destroy_process_group()


@fix()
def environment_as_default() -> None:
    """Take the argument in both spellings, and the environment where there is none."""
    parser = argparse.ArgumentParser("train.py")
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    parser.add_argument("--local-rank", "--local_rank", type=int, default=local_rank)
    args, of_launch_py = parser.parse_args(TORCHRUN), parser.parse_args(launch_py())
    with session(backend=backend()) as world:
        assert args.local_rank == of_launch_py.local_rank == world.local_rank
        check(args.local_rank)


if __name__ == "__main__":
    main()
