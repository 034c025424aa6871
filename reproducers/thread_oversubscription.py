"""DDP603 thread-oversubscription: each rank takes the whole machine for its loader's workers.

torchrun --nproc-per-node=4 reproducers/thread_oversubscription.py broken
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset

from ddpdoctor.reproducer import backend, broken, documented, fix, main, measured
from ddpdoctor.stack.process_group import session

SAMPLES = TensorDataset(torch.arange(64))

Loader = DataLoader[tuple[torch.Tensor, ...]]


@contextmanager
def node(allowed: int) -> Iterator[None]:
    """Stand on a node with a core for each rank, of which this job may use so many.

    The node is pretended, so that any machine shows the same. The limit is real: it is what
    taskset, SLURM and cpusets set, and os.cpu_count() does not look at it.
    """
    before = os.sched_getaffinity(0)
    given = sorted(before)[:allowed]
    counted = os.cpu_count()
    os.sched_setaffinity(0, given)
    try:
        assert os.cpu_count() == counted, "os.cpu_count() has seen the limit"
        with mock.patch("os.cpu_count", return_value=dist.get_world_size()):
            yield
    finally:
        os.sched_setaffinity(0, before)


def check(loader: Loader) -> None:
    """Assert that all samples come, and from no more workers than the job may use cores."""
    batches = iter(loader)
    mine = len(getattr(batches, "_workers", ()))
    workers = torch.tensor(mine)
    dist.all_reduce(workers)
    cores = len(os.sched_getaffinity(0))
    measured(f"{workers} workers of {dist.get_world_size()} ranks on {cores} core(s)")
    assert workers <= cores, f"{workers} workers for {cores} core(s)"
    seen = sorted(int(sample) for [batch] in batches for sample in batch)
    assert seen == list(range(len(SAMPLES))), "a sample is missing or came twice"


@broken()
def cpu_count_on_every_rank() -> None:
    """Let every rank start as many workers as the machine has cores."""
    dist.init_process_group(backend())
    with node(allowed=1):
        check(DataLoader(SAMPLES, batch_size=8, num_workers=os.cpu_count() or 1))  # <-- DDP603
    dist.destroy_process_group()


@documented(source="001 performance 3, num_workers")
def cpu_count_by_ranks() -> None:
    """num_workers = min(8, os.cpu_count() // num_gpus), where the job may use one core."""
    dist.init_process_group(backend())
    num_gpus = dist.get_world_size()
    with node(allowed=1):
        num_workers = min(8, (os.cpu_count() or 1) // num_gpus)
        check(DataLoader(SAMPLES, batch_size=8, num_workers=num_workers))
    dist.destroy_process_group()


@documented(source="pytorch/examples#585")
def divide_and_round_up() -> None:
    """Divide the workers by the ranks of the node, rounding up, so that each has one."""
    dist.init_process_group(backend())
    ranks = dist.get_world_size()
    with node(allowed=1):
        workers = (4 + ranks - 1) // ranks
        check(DataLoader(SAMPLES, batch_size=8, num_workers=workers))
    dist.destroy_process_group()


@fix()
def cores_of_this_job() -> None:
    """Divide the cores that the job may use by the ranks of this machine; none is a number, too."""
    with session(backend=backend()) as world:
        local_ranks = int(os.environ.get("LOCAL_WORLD_SIZE", world.world_size))
        with node(allowed=1):
            num_workers = len(os.sched_getaffinity(0)) // local_ranks
            check(DataLoader(SAMPLES, batch_size=8, num_workers=num_workers))


if __name__ == "__main__":
    main()
