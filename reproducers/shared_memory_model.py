"""DDP320 shared-memory-model: the module is built before the ranks are started, and handed to them.

MASTER_PORT=29512 python reproducers/shared_memory_model.py broken
"""

from __future__ import annotations

import copy
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ddpdoctor.reproducer import broken, fix, main

RANKS = 2
STEPS = 10


def train(rank: int, given: nn.Module, *, own: bool) -> None:
    """Train by gradient descent; assert that the weight went as far as in one process."""
    os.environ.setdefault("MASTER_ADDR", "localhost")
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    module = copy.deepcopy(given) if own else given
    model = DistributedDataParallel(module)  # <-- DDP320
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(torch.ones(1, 1)).sum().backward()
        optimizer.step()
        dist.barrier()
    reached = float(next(model.parameters()).detach())
    del model, optimizer
    dist.barrier()
    dist.destroy_process_group()
    # The gradient is 1 at every step, whoever takes it.
    assert abs(reached + 0.1 * STEPS) < 1e-3, f"the weight is {reached:.2f}, not {-0.1 * STEPS:.2f}"


def owning(rank: int, given: nn.Module) -> None:
    train(rank, given, own=True)


def sharing(rank: int, given: nn.Module) -> None:
    train(rank, given, own=False)


def module() -> nn.Module:
    made = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(made.weight)
    return made


@broken(ranks="all", launch="env MASTER_PORT={port} python {proof} {variant}")
def handed_to_the_ranks() -> None:
    """Build the module once, and hand it to mp.spawn: it lies in memory that all ranks share."""
    mp.spawn(sharing, args=(module(),), nprocs=RANKS)  # type: ignore[attr-defined, no-untyped-call]  # <-- DDP320


@fix(launch="env MASTER_PORT={port} python {proof} {variant}")
def copied_by_each_rank() -> None:
    """Have each rank train a copy of its own."""
    mp.spawn(owning, args=(module(),), nprocs=RANKS)  # type: ignore[attr-defined, no-untyped-call]


if __name__ == "__main__":
    main()
