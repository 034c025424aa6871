"""What the facts say about the job that this process is part of, or will start."""

from __future__ import annotations

from ddpdoctor.environment.model import Environment


def spans_nodes(environment: Environment) -> bool:
    """Whether the job is known to run on more than one machine."""
    counts = ("GROUP_WORLD_SIZE", "SLURM_STEP_NUM_NODES", "SLURM_JOB_NUM_NODES", "SLURM_NNODES")
    if any((environment.integer(name) or 0) > 1 for name in counts):
        return True
    nodes = (environment.value("PET_NNODES") or "").rpartition(":")[2]  # "1:4" is elastic
    if nodes.isdecimal() and nodes.isascii() and int(nodes[:9]) > 1:
        return True
    world, local = environment.integer("WORLD_SIZE"), environment.integer("LOCAL_WORLD_SIZE")
    return world is not None and local is not None and world > local > 0


def local_ranks(environment: Environment) -> int | None:
    """How many ranks share this machine; None if nothing tells."""
    if environment.planned_ranks:
        return environment.planned_ranks
    for launcher in environment.launchers:
        if launcher.local_size:
            return launcher.local_size
    asked = environment.integer("LOCAL_WORLD_SIZE") or environment.integer("PET_NPROC_PER_NODE")
    return asked if asked and asked > 0 else None
