"""DDP118 ranks-meet-nowhere: each rank looks for a free port by itself, and waits there alone.

python reproducers/ranks_meet_nowhere.py broken
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from ddpdoctor.reproducer import broken, fix, main

RANKS = 2
PATIENCE = timedelta(seconds=5)
"""How long the broken form waits; half an hour by default."""


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return str(probe.getsockname()[1])


def meet(rank: int) -> None:
    """Join, and assert that all have come."""
    os.environ.setdefault("MASTER_ADDR", "localhost")
    dist.init_process_group("gloo", rank=rank, world_size=RANKS, timeout=PATIENCE)
    total = torch.ones(1)
    dist.all_reduce(total)
    assert total.item() == RANKS, f"{total.item()} of {RANKS} ranks have come"
    dist.destroy_process_group()


def alone(rank: int) -> None:
    os.environ["MASTER_PORT"] = free_port()  # <-- DDP118
    meet(rank)


def start(rank: Callable[[int], None]) -> None:
    """Start the ranks; by fork, which is quicker than spawn."""
    mp.start_processes(rank, nprocs=RANKS, start_method="fork")  # type: ignore[attr-defined, no-untyped-call]


@broken(ranks="any", launch="python {proof} {variant}")
def a_port_of_each_rank() -> None:
    """Look for a free port in every rank."""
    start(alone)


@fix(source="pytorch/pytorch#53395", launch="python {proof} {variant}")
def one_port_for_all() -> None:
    """Look for it once, in the process that starts the ranks."""
    os.environ["MASTER_PORT"] = free_port()
    start(meet)


if __name__ == "__main__":
    main()
