"""What a launch file must say, and why: from the facts about the machine and what was asked for."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Literal

from ddpdoctor.environment.model import Cpus, Environment, Memory, Torch

Device = Literal["cpu", "cuda"]

RANK_BYTES = 1 << 30
"""What one rank may need before its model and data: torch imported, and room to work."""


class Impossible(Exception):
    """What was asked for cannot be started; the message says why in one line."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user asked for; None is for this machine to say."""

    nproc: int | None = None
    """Ranks per node."""
    nodes: int = 1
    device: Device | None = None
    cpus: int | None = None
    """CPUs of each node."""
    master: str | None = None
    """Name or address of the first node."""
    image: str | None = None
    """Container image, for Kubernetes."""
    script: str = "train.py"
    python: str = "python3"
    name: str = "train"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a launch file must say."""

    nproc: int
    """Ranks per node."""
    nodes: int
    device: Device
    threads: int
    """CPU threads for each rank."""
    master: str
    """Name or address of the first node."""
    image: str | None
    script: str
    python: str
    name: str
    why_nproc: str
    why_threads: str
    here: bool
    """Whether this machine can start one node of it."""

    @property
    def world_size(self) -> int:
        """Ranks on all nodes."""
        return self.nproc * self.nodes


def plan(wish: Wish, environment: Environment) -> Plan:
    """What to start.

    Raises Impossible, where this machine has less than was asked for and is the only node there
    would be.
    """
    gpus = _gpus(environment)
    device: Device = wish.device or ("cuda" if gpus else "cpu")
    cpus = wish.cpus or _cpus(environment)
    nproc, why = _ranks(wish, device, gpus, cpus, environment)
    here = device == "cpu" or nproc <= gpus
    threads, why_threads = _threads(wish, nproc, cpus, here)
    return Plan(
        nproc=nproc,
        nodes=wish.nodes,
        device=device,
        threads=threads,
        master=wish.master or socket.gethostname(),
        image=wish.image,
        script=wish.script,
        python=wish.python,
        name=wish.name,
        why_nproc=why,
        why_threads=why_threads,
        here=here,
    )


def _threads(wish: Wish, nproc: int, cpus: int, here: bool) -> tuple[int, str]:
    if wish.cpus is None and not here:
        return 1, "one thread for each rank: how many CPUs such a node has, --cpus N would say"
    why = f"{cpus} CPUs for {nproc} ranks: with more threads they slow each other down"
    return max(1, cpus // nproc), why


def _ranks(
    wish: Wish, device: Device, gpus: int, cpus: int, environment: Environment
) -> tuple[int, str]:
    if device == "cuda":
        if wish.nproc is not None:
            return wish.nproc, "as asked for: one rank for each GPU of a node"
        if gpus == 0:
            raise Impossible("no GPU is seen here: say how many a node has with --nproc N")
        return gpus, f"one rank for each of the {gpus} GPUs that torch sees here"
    if wish.nproc is not None:
        return wish.nproc, "as asked for"
    ranks, why = cpus, f"one rank for each of {cpus} usable CPUs"
    room = _room(environment)
    if room is not None and room < ranks:
        ranks, why = max(1, room), f"one rank for each GiB of memory that is free, of {cpus} CPUs"
    return ranks, why


def _gpus(environment: Environment) -> int:
    if isinstance(environment.torch, Torch) and isinstance(environment.torch.visible_gpus, int):
        return environment.torch.visible_gpus
    return len(environment.gpus) if isinstance(environment.gpus, tuple) else 0


def _cpus(environment: Environment) -> int:
    return environment.cpus.usable if isinstance(environment.cpus, Cpus) else 1


def _room(environment: Environment) -> int | None:
    memory = environment.memory
    return memory.free // RANK_BYTES if isinstance(memory, Memory) else None
