"""DDP104 port-in-use: the port of the rendezvous belongs to another job on this machine.

torchrun --nproc-per-node=4 reproducers/port_in_use.py broken
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist

from ddpdoctor.reproducer import backend, broken, documented, fix, main, own_device, shared_folder
from ddpdoctor.stack.process_group import session

PATIENCE = timedelta(seconds=1)


@contextmanager
def another_job() -> Iterator[int]:
    """Have another job on this machine, as long as the block lasts; yields the port it holds."""
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    notes = dist.FileStore(str(shared_folder() / "notes"), world_size)  # type: ignore[attr-defined]
    with socket.socket() as held:
        if rank == 0:
            held.bind(("127.0.0.1", 0))
            held.listen()
            notes.set("port", str(held.getsockname()[1]))
        yield int(notes.get("port"))


def join(port: int) -> None:
    # Run alone under torchrun: here rank 0 hosts the store, and not the agent.
    os.environ.pop("TORCHELASTIC_USE_AGENT_STORE", None)
    dist.init_process_group(  # <-- DDP104
        backend(),
        init_method=f"tcp://127.0.0.1:{port}",
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
        timeout=PATIENCE,
    )


def check() -> None:
    """Assert that all ranks are in the group, and that it works."""
    world_size = int(os.environ["WORLD_SIZE"])
    total = torch.ones(1, device=own_device())
    dist.all_reduce(total)
    assert total.item() == world_size, f"the sum over the ranks is {total.item()}"


@broken(ranks=(0,))
def port_of_another_job() -> None:
    """Host the rendezvous on a port that is written down in the script, and taken."""
    with another_job() as port:
        join(port)


@documented(
    source="003 port conflict, xdit-project/mochi-xdit#22",
    launch="env MASTER_PORT=12356 torchrun --nproc-per-node=2 {proof} {variant}",
)
def exported_port() -> None:
    """Export MASTER_PORT=12356, then torchrun: it sets another one for its ranks."""
    dist.init_process_group(backend())
    check()
    port = os.environ["MASTER_PORT"]
    dist.destroy_process_group()
    assert port == "12356", f"MASTER_PORT=12356 was exported, and the ranks met at {port}"


@documented(
    source="003 port conflict, the script's default",
    launch="torchrun --nproc-per-node=2 {proof} {variant}",
)
def port_of_the_script() -> None:
    """Set another port in the script, then torchrun: its ranks look for a store nobody hosts."""
    os.environ["MASTER_PORT"] = "12356"
    dist.init_process_group(backend(), timeout=PATIENCE)
    check()
    dist.destroy_process_group()


@documented(
    source="TorchDR/TorchDR#249",
    launch="torchrun --nproc-per-node=2 --master-port={port} {proof} {variant}",
)
def port_as_an_option() -> None:
    """Tell torchrun the port: --master-port."""
    dist.init_process_group(backend())
    check()
    dist.destroy_process_group()


@documented(
    source="meta-pytorch/torchtune#392",
    launch="torchrun --nproc-per-node=2 --rdzv-backend=c10d --rdzv-endpoint=localhost:0 "
    "{proof} {variant}",
)
def any_free_port() -> None:
    """Let torchrun's rendezvous take a free port: --rdzv-endpoint=localhost:0."""
    dist.init_process_group(backend())
    check()
    dist.destroy_process_group()


@fix(
    source="TorchDR/TorchDR#251",
    launch="torchrun --standalone --nproc-per-node=2 {proof} {variant}",
)
def standalone() -> None:
    """Start by torchrun --standalone: any free port, and no other job on it."""
    with another_job() as port, session(backend=backend()):
        check()
        assert os.environ["MASTER_PORT"] != str(port)


if __name__ == "__main__":
    main()
