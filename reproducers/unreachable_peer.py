"""DDP108 unreachable-peer: a firewall between the nodes drops what is sent to the master.

torchrun --nproc-per-node=4 reproducers/unreachable_peer.py broken    (as root)
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist

from ddpdoctor.reproducer import backend, broken, documented, fix, main, measured
from ddpdoctor.stack.process_group import session

MASTER, PORT = "10.99.0.1", 29500
PATIENCE = timedelta(seconds=2)

_NETWORK = 0x40000000  # CLONE_NEWNET
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def hosts_behind_a_firewall() -> Iterator[None]:
    """Be on a host of one's own: rank 0's is the master, and the others' packets to it vanish.

    A network namespace is a host, as far as its network goes. What is routed to a loopback that
    lacks the address is dropped without a word, as a firewall drops it.
    """
    rank = os.environ["RANK"]
    with open("/proc/thread-self/ns/net") as before:  # noqa: PTH123 - a handle, not a file to read
        if _libc.unshare(_NETWORK) != 0:
            raise OSError(ctypes.get_errno(), "no network namespace can be made")
        kind = ("addr", "add") if rank == "0" else ("route", "add")
        for command in (("link", "set", "lo", "up"), (*kind, f"{MASTER}/32", "dev", "lo")):
            subprocess.run(["ip", *command], check=True)
        yield
        if _libc.setns(before.fileno(), _NETWORK) != 0:
            raise OSError(ctypes.get_errno(), "there is no way back to the host's network")


def join(patience: timedelta) -> None:
    # Run alone under torchrun: here rank 0 hosts the store, and not the agent.
    os.environ.pop("TORCHELASTIC_USE_AGENT_STORE", None)
    dist.init_process_group(  # <-- DDP108
        backend(),
        init_method=f"tcp://{MASTER}:{PORT}",
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
        timeout=patience,
    )


@broken(ranks="nonzero")
def join_through_a_firewall() -> None:
    """Join from another host: nothing is heard until the timeout, of half an hour by default."""
    with hosts_behind_a_firewall():
        join(PATIENCE)


@documented(source="asked for in pytorch/pytorch#105782")
def wait_for_longer() -> None:
    """Raise the timeout: the same, later."""
    with hosts_behind_a_firewall():
        join(PATIENCE + timedelta(seconds=1))


def must_be_reachable(host: str, port: int, patience: float = 0.5) -> None:
    """Raise an error that names both ends, if nobody can be reached there."""
    try:
        socket.create_connection((host, port), timeout=patience).close()
    except OSError as error:
        raise ConnectionError(
            f"{socket.gethostname()} cannot reach {host}:{port} ({error or 'no answer'}): is "
            "MASTER_ADDR right, and does a firewall let this port through?"
        ) from error


def probe() -> str:
    """Look from each host whether it reaches the master's port; what the error says, or ""."""
    if os.environ["RANK"] == "0":
        with socket.create_server((MASTER, PORT)):
            must_be_reachable(MASTER, PORT)
        return ""
    try:
        must_be_reachable(MASTER, PORT)
    except ConnectionError as error:
        return str(error)
    return ""


@documented(source="001 process hangs, 1 and 2")
def look_whether_the_master_is_reached() -> None:
    """Look from every node whether it reaches the master, before the job is started."""
    with hosts_behind_a_firewall():
        said = probe()
    assert (f"{MASTER}:{PORT}" in said) == (os.environ["RANK"] != "0"), f"the probe said {said!r}"


@fix()
def probe_then_join() -> None:
    """Probe the port first, which fails in half a second and says whom; join when it is open."""
    with hosts_behind_a_firewall():
        began = time.monotonic()
        said = probe()
        took = time.monotonic() - began
        assert (f"{MASTER}:{PORT}" in said) == (os.environ["RANK"] != "0"), said
    with session(backend=backend()) as world:
        waits = torch.tensor(took, device=world.device)
        dist.all_reduce(waits, op=dist.ReduceOp.MAX)
        measured(f"a closed port was told after {waits.item():.1f} s")
        total = torch.ones(1, device=world.device)
        dist.all_reduce(total)
        assert total.item() == world.world_size


if __name__ == "__main__":
    main()
