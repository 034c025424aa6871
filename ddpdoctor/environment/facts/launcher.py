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


_LAUNCHERS = (
    _Signs(
        "torchrun",
        sign="TORCHELASTIC_RUN_ID",
        rank="RANK",
        size="WORLD_SIZE",
        local_rank="LOCAL_RANK",
        local_size="LOCAL_WORLD_SIZE",
    ),
    _Signs(
        "srun",
        sign="SLURM_STEP_ID",  # a batch script has SLURM_PROCID too, but only srun starts steps
        rank="SLURM_PROCID",
        size="SLURM_STEP_NUM_TASKS",
        local_rank="SLURM_LOCALID",
        local_size="SLURM_STEP_TASKS_PER_NODE",
    ),
    _Signs(
        "Open MPI",
        sign="OMPI_COMM_WORLD_RANK",
        rank="OMPI_COMM_WORLD_RANK",
        size="OMPI_COMM_WORLD_SIZE",
        local_rank="OMPI_COMM_WORLD_LOCAL_RANK",
        local_size="OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    _Signs(
        "MVAPICH",
        sign="MV2_COMM_WORLD_RANK",
        rank="MV2_COMM_WORLD_RANK",
        size="MV2_COMM_WORLD_SIZE",
        local_rank="MV2_COMM_WORLD_LOCAL_RANK",
        local_size="MV2_COMM_WORLD_LOCAL_SIZE",
    ),
    _Signs(
        "PMI",
        sign="PMI_RANK",
        rank="PMI_RANK",
        size="PMI_SIZE",
        local_rank="MPI_LOCALRANKID",
        local_size="MPI_LOCALNRANKS",
    ),
    _Signs(
        "jsrun",
        sign="JSM_NAMESPACE_RANK",
        rank="JSM_NAMESPACE_RANK",
        size="JSM_NAMESPACE_SIZE",
        local_rank="JSM_NAMESPACE_LOCAL_RANK",
        local_size="JSM_NAMESPACE_LOCAL_SIZE",
    ),
    _Signs(
        "accelerate",
        sign="ACCELERATE_MIXED_PRECISION",  # `accelerate launch` sets it for whatever it starts
        rank="RANK",
        size="WORLD_SIZE",
        local_rank="LOCAL_RANK",
        local_size="LOCAL_WORLD_SIZE",
    ),
    _Signs(
        "deepspeed",
        sign="CROSS_SIZE",  # deepspeed/launcher/launch.py
        rank="RANK",
        size="WORLD_SIZE",
        local_rank="LOCAL_RANK",
        local_size="LOCAL_SIZE",
    ),
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
