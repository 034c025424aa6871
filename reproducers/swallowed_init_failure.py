"""DDP111 swallowed-init-failure: a rank that cannot join goes on, and believes to be rank 0.

torchrun --nproc-per-node=4 reproducers/swallowed_init_failure.py broken
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

from ddpdoctor.reproducer import backend, broken, documented, fix, main, shared_folder
from ddpdoctor.stack.process_group import session

MISSPELT = "glooo"
"""What the configuration says: on this machine, no rank can join with it."""


def write_as_main(folder: Path) -> None:
    """Leave a file as rank 0 does, and only rank 0."""
    rank = dist.get_rank() if dist.is_initialized() else 0
    if rank == 0:
        (folder / f"best-{os.getpid()}.pt").touch()


def check(folder: Path) -> None:
    """Assert that this rank is in the group of all, and that one rank has written."""
    world_size = int(os.environ["WORLD_SIZE"])
    assert dist.is_initialized(), f"1 of {world_size} lone trainings: there is no process group"
    assert dist.get_world_size() == world_size, f"{dist.get_world_size()} ranks joined"
    dist.barrier()
    writers = [*folder.glob("best-*.pt")]
    assert len(writers) == 1, f"{len(writers)} processes have written as rank 0"


def train() -> None:
    """Take a step, alone or not."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(4, 2)).sum().backward()
    optimizer.step()


def set_up(name: str) -> bool:
    """Join the process group; say whether this is distributed training."""
    try:
        dist.init_process_group(name)  # <-- DDP111
        return True
    except Exception:
        print("Not init distributed mode.")
        return False


@broken()
def go_on_alone() -> None:
    """Catch every exception of the set-up, and train on alone."""
    set_up(MISSPELT)
    train()
    write_as_main(shared_folder())


@documented(source="axolotl-ai-cloud/axolotl#3038, as first proposed")
def catch_value_errors_alone() -> None:
    """Catch ValueError alone, which is what a missing RANK raises: srun, for one, sets none."""
    os.environ["SLURM_PROCID"] = os.environ.pop("RANK")
    with contextlib.suppress(ValueError):
        dist.init_process_group(backend())
    train()
    write_as_main(shared_folder())
    check(shared_folder())


def refused(action: Callable[[], object]) -> bool:
    """Say whether this raises."""
    try:
        action()
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
        return True
    return False


@documented(source="axolotl-ai-cloud/axolotl#3038, review")
def raise_where_ranks_are_expected() -> None:
    """Catch it only where WORLD_SIZE says that there is one process; else raise."""

    def join(name: str) -> None:
        try:
            dist.init_process_group(name)
        except ValueError:
            if int(os.environ.get("WORLD_SIZE", "1")) > 1:
                raise

    assert refused(lambda: join(MISSPELT)), "a failure to join was swallowed"
    join(backend())
    train()
    write_as_main(shared_folder())
    check(shared_folder())
    dist.destroy_process_group()


@fix()
def let_it_raise() -> None:
    """Open a session: a failure to join raises, and no rank trains alone."""
    os.environ["GLOO_SOCKET_IFNAME"] = os.environ["NCCL_SOCKET_IFNAME"] = "eth99"
    assert refused(session(backend=backend()).__enter__), "a failure to join was swallowed"
    del os.environ["GLOO_SOCKET_IFNAME"], os.environ["NCCL_SOCKET_IFNAME"]
    with session(backend=backend(), distributed=True):
        train()
        write_as_main(shared_folder())
        check(shared_folder())


if __name__ == "__main__":
    main()
