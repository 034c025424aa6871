"""CPUs, shared memory and limits."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Finding
from ddpdoctor.environment.checks.finding import finding
from ddpdoctor.environment.checks.job import local_ranks
from ddpdoctor.environment.model import Environment, Limits, SharedMemory, Unknown

MIB = 1 << 20
# What Docker and Kubernetes give a container unless told otherwise.
_CONTAINER_SHARED_MEMORY = 64 * MIB
# The customary soft limit on Linux.
_OPEN_FILES = 1024
# Four gloo ranks with two data-loader workers each and torchrun are 53 tasks, on two CPUs.
_TASKS = 64


def too_many_threads(environment: Environment) -> Iterator[Finding]:
    """DDP603: more threads than CPUs, or CPUs that os.cpu_count() counts and nobody may use."""
    cpus = environment.cpus
    if isinstance(cpus, Unknown):
        return
    first = (environment.value("OMP_NUM_THREADS") or "").partition(",")[0].strip()
    # PyTorch with MKL starts no more threads than there are cores, whatever it is told.
    threads = min(int(first[:9]), cpus.count) if first.isascii() and first.isdecimal() else 0
    ranks = local_ranks(environment)
    if ranks and threads > 1 and ranks * threads > cpus.usable:
        fair = max(1, cpus.usable // ranks)
        yield finding(
            "DDP603",
            "warning",
            f"{ranks} ranks of {threads} threads are {ranks * threads}, on {cpus.usable} CPUs",
            f"Set OMP_NUM_THREADS={fair}.",
            notes=("OMP_NUM_THREADS counts for each rank by itself",),
            commands=(f"export OMP_NUM_THREADS={fair}",),
        )
    if cpus.usable < cpus.count:
        yield finding(
            "DDP603",
            "info",
            f"os.cpu_count() says {cpus.count}, but this process may use {cpus.usable}",
            "Count with len(os.sched_getaffinity(0)), and mind the control group's quota.",
            notes=(
                f"affinity: {_shown(cpus.affinity)}; control group: {_shown(cpus.quota)}",
                "harmless unless workers or threads are counted by os.cpu_count()",
            ),
        )


def little_shared_memory(environment: Environment) -> Iterator[Finding]:
    """DDP604: too little room in /dev/shm for data-loader workers."""
    memory = environment.shared_memory
    if not isinstance(memory, SharedMemory) or memory.free > _CONTAINER_SHARED_MEMORY:
        return
    yield finding(
        "DDP604",
        "warning",
        f"/dev/shm has {memory.free // MIB} MiB left of {memory.size // MIB}",
        "Start the container with --shm-size=1g or --ipc=host, or use num_workers=0.",
        notes=(
            "data-loader workers hand their batches over through it; when it is full they die"
            " of a bus error, or of 'No space left on device'",
        ),
        commands=("docker run --shm-size=1g ...",),
        certainty="evidence",
    )


def low_limits(environment: Environment) -> Iterator[Finding]:
    """DDP711: limits that a small job already hits."""
    limits = environment.limits
    if isinstance(limits, Unknown):
        return
    files = limits.open_files.soft
    if files is not None and files < _OPEN_FILES:
        yield finding(
            "DDP711",
            "warning",
            f"this process may open {files} files only",
            f"Raise the limit to {_OPEN_FILES} or more before the launch.",
            notes=("every tensor that a data-loader worker sends is an open file",),
            commands=("ulimit -n 65536",),
            certainty="evidence",
        )
    locked = limits.locked_memory.soft
    if isinstance(environment.infiniband, tuple) and environment.infiniband and locked is not None:
        yield finding(
            "DDP711",
            "warning",
            f"locked memory is limited to {locked // 1024} KiB, and there is InfiniBand",
            "Lift the limit: RDMA locks its buffers in memory.",
            notes=(f"devices: {', '.join(environment.infiniband)}",),
            commands=("ulimit -l unlimited",),
            certainty="evidence",
        )
    yield from _few_tasks(limits)


def _few_tasks(limits: Limits) -> Iterator[Finding]:
    if not isinstance(limits.tasks_allowed, int):
        return
    left = limits.tasks_allowed - (limits.tasks_used or 0)
    if left >= _TASKS:
        return
    yield finding(
        "DDP711",
        "warning",
        f"the control group has room for {left} more processes and threads",
        "Raise the container's limit.",
        notes=(
            f"pids.max is {limits.tasks_allowed}",
            "four ranks with two data-loader workers each take about fifty",
        ),
        commands=("docker run --pids-limit=-1 ...",),
        certainty="evidence",
    )


def _shown(limit: object) -> str:
    return f"{limit:g}" if isinstance(limit, int | float) else "no limit"
