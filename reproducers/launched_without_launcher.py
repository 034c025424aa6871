"""DDP103 launched-without-launcher: a script that wants several ranks is started by plain python.

python reproducers/launched_without_launcher.py broken
"""

from __future__ import annotations

import os

import torch
import torch.distributed as dist

from ddpdoctor.reproducer import backend, broken, documented, fix, main, own_device
from ddpdoctor.stack.errors import LauncherError
from ddpdoctor.stack.process_group import session


def check(world_size: int) -> None:
    """Assert that so many ranks are in the group, and that it works."""
    joined = dist.get_world_size() if dist.is_initialized() else 1
    assert joined == world_size, f"asked for distributed training, and {joined} process trains"
    if dist.is_initialized():
        total = torch.ones(1, device=own_device())
        dist.all_reduce(total)
        assert total.item() == world_size, f"the sum over the ranks is {total.item()}"


@broken(launch="python {proof} {variant}")
def started_by_python() -> None:
    """Start a script that joins a group as `python train.py`."""
    dist.init_process_group(backend())  # <-- DDP103
    check(2)
    dist.destroy_process_group()


@documented(
    source="000 troubleshooting 2, meta-llama/llama-cookbook#59",
    launch="torchrun --nproc-per-node=2 {proof} {variant}",
)
def started_by_torchrun() -> None:
    """Start it as `torchrun --nproc-per-node=2 train.py`."""
    dist.init_process_group(backend())
    check(2)
    dist.destroy_process_group()


@documented(source="003 method 2, --ddp", launch="python {proof} {variant}")
def ddp_as_an_option() -> None:
    """Ask for it by --ddp and start by python: without LOCAL_RANK it trains alone, silently."""
    ddp = True
    if ddp and "LOCAL_RANK" in os.environ:
        dist.init_process_group(backend())
    else:
        ddp = False
    check(2)


@documented(
    source="meta-llama/llama#391",
    launch="env RANK=0 WORLD_SIZE=1 MASTER_ADDR=localhost MASTER_PORT={port} "
    "python {proof} {variant}",
)
def variables_by_hand() -> None:
    """Set what is said to be missing, RANK=0 and so on, by hand: a group of one."""
    dist.init_process_group(backend())
    check(2)
    dist.destroy_process_group()


@fix(launch="python {proof} {variant}")
def say_what_is_wanted() -> None:
    """Open a session: with distributed=True it fails and names torchrun, else it trains alone."""
    said = ""
    try:
        session(backend=backend(), distributed=True).__enter__()
    except LauncherError as error:
        said = str(error)
    assert "torchrun" in said, f"distributed=True without a launcher said {said!r}"
    with session(backend=backend()) as world:
        assert (world.rank, world.world_size, world.backend) == (0, 1, None)
        check(1)


if __name__ == "__main__":
    main()
