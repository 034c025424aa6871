"""DDP114 double-launch: torchrun starts ranks, and each of them starts ranks once more.

torchrun --nproc-per-node=2 reproducers/double_launch.py broken
"""

from __future__ import annotations

import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from ddpdoctor.reproducer import backend, broken, documented, fix, main, own_device, shared_folder

RANKS = 2
PATIENCE = timedelta(seconds=3)
"""How long the broken form waits; half an hour by default."""


def check() -> None:
    """Assert that as many ranks as were wanted are in the group, and that it adds up right."""
    total = torch.ones(1, device=own_device())
    dist.all_reduce(total)
    assert total.item() == RANKS, f"the sum of ones over {RANKS} ranks is {total.item()}"
    rank = dist.get_rank()
    (shared_folder() / f"rank-{rank}-by-{os.getpid()}").touch()
    dist.barrier()
    names = sorted(path.name.partition("-by-")[0] for path in shared_folder().glob("rank-*-by-*"))
    assert names == [f"rank-{each}" for each in range(RANKS)], f"these have trained: {names}"


def worker(rank: int, world_size: int, patience: timedelta | None = None) -> None:
    """Join by the environment, as the rank that this process was told to be, and train."""
    os.environ["LOCAL_RANK"] = str(rank)
    dist.init_process_group(backend(), rank=rank, world_size=world_size, timeout=patience)
    check()
    dist.destroy_process_group()


@broken(ranks="any", launch="torchrun --nproc-per-node=2 {proof} {variant}")
def spawn_in_every_rank() -> None:
    """Start by torchrun a script that starts its ranks itself; by fork, which is quicker."""
    mp.start_processes(  # type: ignore[attr-defined, no-untyped-call]  # <-- DDP114
        worker, args=(RANKS, PATIENCE), nprocs=RANKS, start_method="fork"
    )


def launch_once() -> None:
    """Be a rank where a launcher has made this process one; else start the ranks."""
    if "RANK" not in os.environ:
        os.environ.setdefault("MASTER_ADDR", "localhost")
        mp.start_processes(worker, args=(RANKS,), nprocs=RANKS, start_method="fork")  # type: ignore[attr-defined, no-untyped-call]
        return
    dist.init_process_group(backend())
    check()
    dist.destroy_process_group()


@documented(source="pytorch/xla#7648", launch="torchrun --nproc-per-node=2 {proof} {variant}")
def one_entry_under_torchrun() -> None:
    """Spawn only where no launcher has started this process; here torchrun has."""
    launch_once()


@documented(
    source="pytorch/xla#7648, from plain python",
    launch="env MASTER_PORT={port} python {proof} {variant}",
)
def one_entry_under_python() -> None:
    """Spawn only where no launcher has started this process; here nobody has."""
    launch_once()


@fix(
    source="hirofumi0810/neural_sp#320",
    launch="torchrun --standalone --nproc-per-node=2 {proof} {variant}",
)
def torchrun_alone() -> None:
    """Take mp.spawn out, and have torchrun start the ranks."""
    dist.init_process_group(backend())
    check()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
