"""DDP105 wrong-world-size: fewer processes are started than the world size says.

python reproducers/wrong_world_size.py broken
"""

from __future__ import annotations

import os
import socket
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from ddpdoctor.reproducer import backend, broken, documented, fix, main, own_device
from ddpdoctor.stack.process_group import session

PATIENCE = timedelta(seconds=2)
"""How long the broken forms wait; half an hour by default."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def check(world_size: int) -> None:
    """Assert that so many ranks are in the group, and that it works."""
    assert dist.get_world_size() == world_size, f"{dist.get_world_size()} ranks joined"
    total = torch.ones(1, device=own_device())
    dist.all_reduce(total)
    assert total.item() == world_size, f"the sum over the ranks is {total.item()}"


def worker(rank: int, port: int, world_size: int, patience: timedelta) -> None:
    """Join a group of the configured size."""
    os.environ["LOCAL_RANK"] = str(rank)
    dist.init_process_group(  # <-- DDP105
        backend(),
        init_method=f"tcp://127.0.0.1:{port}",
        rank=rank,
        world_size=world_size,
        timeout=patience,
    )
    check(world_size)
    dist.destroy_process_group()


def start(processes: int, configured: int) -> None:
    """Start as many processes as this machine has GPUs, each of which believes the configuration.

    By fork: it is quicker than spawn, and nothing here has used a GPU.
    """
    patience = timedelta(minutes=5) if processes == configured else PATIENCE
    arguments = (free_port(), configured, patience)
    mp.start_processes(worker, args=arguments, nprocs=processes, start_method="fork")  # type: ignore[attr-defined, no-untyped-call]


@broken(ranks="any", launch="python {proof} {variant}")
def eight_configured() -> None:
    """Start 4 processes where the configuration says 8: they wait for the other 4."""
    start(processes=4, configured=8)


@documented(source="002 configuration fix", launch="python {proof} {variant}")
def four_configured() -> None:
    """Write 4 in place of 8, and start it on the next machine, which has 2."""
    start(processes=2, configured=4)


@documented(
    source="004 environment variables",
    launch="env MASTER_ADDR=localhost MASTER_PORT={port} WORLD_SIZE=4 RANK=0 "
    "python {proof} {variant}",
)
def exported_in_one_shell() -> None:
    """Export MASTER_ADDR, MASTER_PORT, WORLD_SIZE=4 and RANK=0, and start the script."""
    dist.init_process_group(backend(), timeout=PATIENCE)
    check(4)
    dist.destroy_process_group()


@fix(launch="python {proof} {variant}")
def count_what_is_there() -> None:
    """Count the devices once, and start as many processes as the world is to have."""
    devices = 3  # torch.cuda.device_count()
    start(processes=devices, configured=devices)


@fix()
def count_from_the_launcher() -> None:
    """Open a session: it takes the world size from the launcher, which started the processes."""
    with session(backend=backend()) as world:
        check(int(os.environ["WORLD_SIZE"]))
        assert world.world_size == int(os.environ["LOCAL_WORLD_SIZE"])


if __name__ == "__main__":
    main()
