"""DDP107 wrong-interface: a variable names a network interface that this machine does not have.

torchrun --nproc-per-node=4 reproducers/wrong_interface.py broken
"""

from __future__ import annotations

import os
import socket

import torch
import torch.distributed as dist

from ddpdoctor.reproducer import backend, broken, documented, fix, main, own_device
from ddpdoctor.stack.process_group import session

ELSEWHERE = "eth99"
"""The interface of the machine that the script was written on."""


def check_group() -> None:
    """Assert that all ranks are in one group, and that messages pass."""
    world_size = int(os.environ["WORLD_SIZE"])
    total = torch.ones(1, device=own_device())
    dist.all_reduce(total)
    assert total.item() == world_size, f"the sum over the ranks is {total.item()}"


def join() -> None:
    dist.init_process_group(backend())  # <-- DDP107
    check_group()
    dist.destroy_process_group()


@broken()
def interface_of_another_machine() -> None:
    """Name an interface that exists elsewhere, for gloo."""
    os.environ["GLOO_SOCKET_IFNAME"] = ELSEWHERE
    join()


@documented(source="AMD-AGI/Primus#1063, as it was")
def address_for_a_name() -> None:
    """Give the variable the address of the interface where its name is not known."""
    os.environ["GLOO_SOCKET_IFNAME"] = "127.0.0.1"
    join()


@documented(source="aws-samples/aws-do-eks#51, as it was")
def all_but_these() -> None:
    """Exclude interfaces with ^, which is NCCL's language."""
    os.environ["GLOO_SOCKET_IFNAME"] = "^docker0,virbr0"
    join()


@documented(source="002 troubleshooting 2, 004 environment variables", speaks_of="nccl")
def variable_of_the_other_library() -> None:
    """Name the right interface, but in NCCL_SOCKET_IFNAME, which gloo does not read."""
    os.environ["GLOO_SOCKET_IFNAME"] = ELSEWHERE
    os.environ["NCCL_SOCKET_IFNAME"] = existing_interface()
    join()


def existing_interface() -> str:
    """Return the name of an interface of this machine: the loopback, as all ranks are here."""
    names = [name for _, name in socket.if_nameindex()]
    assert ELSEWHERE not in names, f"this machine does have {ELSEWHERE}"
    return next(name for name in names if name.startswith("lo"))


@fix()
def interface_that_exists() -> None:
    """Name an interface that the operating system lists."""
    os.environ["GLOO_SOCKET_IFNAME"] = existing_interface()
    with session(backend=backend()):
        check_group()


@fix(source="AMD-AGI/Primus#1063")
def name_none_where_unsure() -> None:
    """Drop a name that this machine does not have: gloo then takes the host's own address."""
    os.environ["GLOO_SOCKET_IFNAME"] = ELSEWHERE
    if os.environ["GLOO_SOCKET_IFNAME"] not in [name for _, name in socket.if_nameindex()]:
        del os.environ["GLOO_SOCKET_IFNAME"]
    with session(backend=backend()):
        check_group()


if __name__ == "__main__":
    main()
