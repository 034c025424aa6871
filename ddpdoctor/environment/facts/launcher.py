"""Who launched this process, as far as the variables tell."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from ddpdoctor.environment.facts.machine import Machine
from ddpdoctor.environment.model import Launcher


class _Signs(NamedTuple):
    """The variables of one launcher: the one that gives it away, and what it tells its ranks."""

    name: Literal[
        "torchrun", "srun", "Open MPI", "MVAPICH", "PMI", "jsrun", "accelerate", "deepspeed"
    ]
    sign: str
    rank: str
    size: str
    local_rank: str
    local_size: str


def _mpis(prefix: str) -> tuple[str, str, str, str]:
    return f"{prefix}_RANK", f"{prefix}_SIZE", f"{prefix}_LOCAL_RANK", f"{prefix}_LOCAL_SIZE"


_TORCHS = "RANK", "WORLD_SIZE", "LOCAL_RANK"
_SLURMS = "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"
_LAUNCHERS = (
    # The sign, then what tells the rank, the size, and both on this node.
    _Signs("torchrun", "TORCHELASTIC_RUN_ID", *_TORCHS, "LOCAL_WORLD_SIZE"),
    # A batch script has SLURM_PROCID too, but only srun starts steps.
    _Signs("srun", "SLURM_STEP_ID", *_SLURMS),
    _Signs("Open MPI", "OMPI_COMM_WORLD_RANK", *_mpis("OMPI_COMM_WORLD")),
    _Signs("MVAPICH", "MV2_COMM_WORLD_RANK", *_mpis("MV2_COMM_WORLD")),
    _Signs("PMI", "PMI_RANK", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    _Signs("jsrun", "JSM_NAMESPACE_RANK", *_mpis("JSM_NAMESPACE")),
    # `accelerate launch` sets it for whatever it starts.
    _Signs("accelerate", "ACCELERATE_MIXED_PRECISION", *_TORCHS, "LOCAL_WORLD_SIZE"),
    _Signs("deepspeed", "CROSS_SIZE", *_TORCHS, "LOCAL_SIZE"),  # deepspeed/launcher/launch.py
)


def launchers(machine: Machine) -> tuple[Launcher, ...]:
    """Every launcher that has left its variables; several where one was started by another."""
    environ = machine.environ
    return tuple(
        Launcher(
            name=signs.name,
            rank=_number(environ, signs.rank),
            size=_number(environ, signs.size),
            local_rank=_number(environ, signs.local_rank),
            local_size=_number(environ, signs.local_size),
        )
        for signs in _LAUNCHERS
        if environ.get(signs.sign)
    )


def context(machine: Machine) -> tuple[str, ...]:
    """What starts processes around here, though it did not start this one."""
    surroundings = []
    if job := machine.environ.get("SLURM_JOB_ID"):
        surroundings.append(f"SLURM job {machine.redactor.text(job)}")
    if machine.environ.get("KUBERNETES_SERVICE_HOST"):
        surroundings.append("Kubernetes")
    return tuple(surroundings)


def _number(environ: Mapping[str, str], name: str) -> int | None:
    # SLURM writes "4(x2),3" for nodes with four, four and three tasks.
    match = re.match(r"[0-9]{1,9}", environ.get(name, ""))
    return int(match[0]) if match else None
