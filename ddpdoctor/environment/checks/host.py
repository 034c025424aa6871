"""CPUs, shared memory and limits."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ddpdoctor.catalog import Finding
from ddpdoctor.environment.checks.finding import finding, origin, setting, taken_away, unset
from ddpdoctor.environment.checks.job import local_ranks, spans_nodes
from ddpdoctor.environment.model import (
    OF_A_RANK,
    Cpus,
    Environment,
    Fabric,
    Limits,
    SharedMemory,
    Torch,
    Unknown,
)
from ddpdoctor.environment.variables import known
from ddpdoctor.report.words import count

MIB = 1 << 20
# What Docker and Kubernetes give a container unless told otherwise.
_CONTAINER_SHARED_MEMORY = 64 * MIB
# The customary soft limit on Linux.
_OPEN_FILES = 1024
# Four gloo ranks with two data-loader workers each and torchrun are 53 tasks, on two CPUs.
_TASKS = 64
_TASKS_OF_A_RANK = 13
# Private memory of a process that has imported torch 2.13 for CPU and joined a gloo group.
_IMPORTED = 200 * MIB
_HANDED_OVER = "data-loader workers hand their batches over through it"
_OLD_KERNEL = (5, 5)
_FULL = 1 << 30
_SETTING_THREADS = ("torchrun", "accelerate")  # for several ranks on a node
_OF_THREADS = ("MKL_NUM_THREADS", "OMP_NUM_THREADS")  # torch with MKL hears the first before
_NOT_SET = "torchrun would set 1; this launcher does not"


def too_many_threads(environment: Environment) -> Iterator[Finding]:
    """DDP603: more threads than CPUs, or CPUs that os.cpu_count() counts and nobody may use."""
    cpus, torch = environment.cpus, environment.torch
    if isinstance(cpus, Unknown):
        return
    threads, by = _asked_threads(environment, cpus)
    if by:
        yield from _shared_cpus(environment, cpus, threads, by)
    elif environment.launchers and not environment.planned_ranks and isinstance(torch, Torch):
        # Of a launch to come it is not known: most launchers set it.
        yield from _shared_cpus(environment, cpus, torch.threads or 0)
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


def _asked_threads(environment: Environment, cpus: Cpus) -> tuple[int, str]:
    """The threads that torch takes because a variable says so, and which one; 0 where none does."""
    torch = environment.torch
    taken = torch.threads if isinstance(torch, Torch) else None
    mkl, omp = (_threads(environment, cpus, name) for name in _OF_THREADS)
    if mkl and taken in (None, mkl):  # a torch without MKL does not hear it
        return mkl, _OF_THREADS[0]
    return (omp, _OF_THREADS[1]) if omp else (0, "")


def _threads(environment: Environment, cpus: Cpus, name: str) -> int:
    first = (environment.value(name) or "").partition(",")[0].strip()
    # PyTorch with MKL starts no more threads than there are cores, whatever it is told.
    return min(int(first[:9]), cpus.count) if re.fullmatch("[0-9]+", first) else 0


def _shared_cpus(
    environment: Environment, cpus: Cpus, threads: int, by: str = ""
) -> Iterator[Finding]:
    """Of threads that a variable asks for, or that torch takes where none does."""
    ranks = 1 if _has_cpus_of_its_own(environment, cpus) else local_ranks(environment)
    if not ranks or threads < 2 or ranks * threads <= cpus.usable:
        return
    fair = max(1, cpus.usable // ranks)
    on_gpus = isinstance(environment.torch, Torch) and environment.torch.visible_gpus != 0
    yield finding(
        "DDP603",
        "warning" if by or not on_gpus else "info",
        f"{count(ranks, 'rank')} of {threads} threads: {ranks * threads}"
        f" on {count(cpus.usable, 'CPU')}",
        f"Set {by or 'OMP_NUM_THREADS'}={fair}.",
        notes=(
            (f"{by} counts for each rank by itself", known()[by].reader)
            if by
            else (
                "OMP_NUM_THREADS is not set: torch takes a thread for each CPU, in every rank",
                *(() if _innermost(environment) in _SETTING_THREADS else (_NOT_SET,)),
                *(("harmless as long as the ranks compute on GPUs alone",) if on_gpus else ()),
            )
        ),
        commands=(f"export {by or 'OMP_NUM_THREADS'}={fair}",),
    )


def _innermost(environment: Environment) -> str:
    """The name of the launcher that has started this process; "" without any."""
    return environment.launchers[0].name if environment.launchers else ""


def _has_cpus_of_its_own(environment: Environment, cpus: Cpus) -> bool:
    """Whether this is a rank that Slurm or MPI has bound: the others have other CPUs.

    For that there must be as many: a container with a part of the machine binds nobody.
    """
    own = ("", "torchrun", "accelerate", "deepspeed")  # these bind nobody unless asked to
    if environment.planned_ranks or _innermost(environment) in own:
        return False
    ranks = local_ranks(environment) or 1
    there = cpus.allowed if isinstance(cpus.allowed, int) else cpus.count
    return (
        isinstance(cpus.affinity, int)
        and cpus.affinity < max(there, 2)
        and (ranks * cpus.affinity <= there)
    )


def too_little_memory(environment: Environment) -> Iterator[Finding]:
    """DDP711: ranks that together need more memory than is left, before they have done anything."""
    ranks, memory = environment.planned_ranks, environment.memory
    if not ranks or isinstance(memory, Unknown):
        return
    left, needed = memory.free, ranks * _IMPORTED
    if needed <= left:
        return
    yield finding(
        "DDP711",
        "error",
        f"{ranks} ranks need {needed // MIB} MiB to import torch, {left // MIB} MiB are left",
        f"Start at most {max(1, left // _IMPORTED)} ranks here, or raise the container's limit.",
        notes=(
            f"an import of torch takes about {_IMPORTED // MIB} MiB for each rank, more with CUDA",
            "the kernel kills a rank when memory runs out: the others lose their connection",
        ),
        certainty="evidence",
    )


def little_shared_memory(environment: Environment) -> Iterator[Finding]:
    """DDP604: too little room in /dev/shm for data-loader workers."""
    memory = environment.shared_memory
    if not isinstance(memory, SharedMemory):
        return
    if memory.free > _CONTAINER_SHARED_MEMORY:
        needed = (local_ranks(environment) or 1) * OF_A_RANK
        if memory.writable is False:
            yield _read_only_shared_memory(memory)
        elif memory.takes_it is False:
            yield _limited_shared_memory(memory, environment.limits)
        elif memory.free < needed:
            yield _scarce_shared_memory(memory, needed)
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


def _read_only_shared_memory(memory: SharedMemory) -> Finding:
    return finding(
        "DDP604",
        "error",
        f"/dev/shm has {memory.free // MIB} MiB left, and nothing can be written there",
        "Mount it writable for this user, or use num_workers=0.",
        notes=("a file was tried there: it is read-only, or not for this user", _HANDED_OVER),
        commands=("mount -o remount,rw /dev/shm",),
    )


def _limited_shared_memory(memory: SharedMemory, limits: Limits | Unknown) -> Finding:
    largest = limits.file_size.soft if isinstance(limits, Limits) else None
    of_a_file = largest is not None and largest < memory.tried
    return finding(
        "DDP604",
        "warning",
        f"/dev/shm has {memory.free // MIB} MiB left, and takes no file of {memory.tried // MIB} "
        "MiB",
        "Lift the limit of a file's size (ulimit -f)."
        if of_a_file
        else "Lift the limit: a quota, or the control group's.",
        notes=("a smaller file was tried there too, and was taken", _HANDED_OVER),
        commands=("ulimit -f unlimited",) if of_a_file else (),
    )


def _scarce_shared_memory(memory: SharedMemory, needed: int) -> Finding:
    return finding(
        "DDP604",
        "info",
        f"/dev/shm has {memory.free // MIB} MiB left, {needed // MIB} may be needed",
        "Start the container with a larger --shm-size, or use fewer workers.",
        notes=(
            "for each rank: two workers, each two batches of 8 MiB ahead",
            "harmless with smaller batches, or without workers",
        ),
        commands=("docker run --shm-size=8g ...",),
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
    yield from _few_tasks(limits, environment.planned_ranks)
    yield from _few_processes(environment, limits)


def too_few_files(allowed: int, needed: int) -> Finding:
    """DDP711: each process of a job may open so many files, and a rank needs more."""
    return finding(
        "DDP711",
        "warning",
        f"each process of this job may have {allowed} files open: a rank needs about {needed}, "
        "sockets to other ranks among them, and where it gets none torch fails or waits for ever",
        "Raise the limit before the launch.",
        commands=("ulimit -n 65536",),
        certainty="evidence",
    )


def _few_processes(environment: Environment, limits: Limits) -> Iterator[Finding]:
    allowed, ranks = limits.processes.soft, environment.planned_ranks or 0
    if limits.exempt or allowed is None or allowed >= max(_TASKS, ranks * _TASKS_OF_A_RANK):
        return
    yield finding(
        "DDP711",
        "warning",
        f"this user may have {allowed} processes and threads, all together",
        "Raise the limit before the launch.",
        notes=(
            "four ranks with two data-loader workers each take about fifty",
            "a thread that cannot be started ends the rank",
        ),
        commands=("ulimit -u 4096",),
        certainty="evidence",
    )


def _few_tasks(limits: Limits, ranks: int | None) -> Iterator[Finding]:
    if not isinstance(limits.tasks_allowed, int):
        return
    left = limits.tasks_allowed - (limits.tasks_used or 0)
    if left >= max(_TASKS, (ranks or 0) * _TASKS_OF_A_RANK):
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


def fabric_addresses(environment: Environment) -> Iterator[Finding]:
    """DDP716: a port without the address that NCCL is told to use, or slower than the others."""
    if isinstance(environment.fabric, Unknown):
        return
    active = [port for port in environment.fabric if "ACTIVE" in port.state]
    index = environment.integer("NCCL_IB_GID_INDEX")
    for port in active:
        if index is None or index < 0 or not port.gids or index in port.gids:
            continue
        yield finding(
            "DDP716",
            "warning",
            f"NCCL_IB_GID_INDEX={index} is an empty entry on port {port.port} of {port.device}",
            "Remove it: NCCL chooses the entry by itself since 2.21.",
            notes=(f"entries: {', '.join(map(str, port.gids[:16]))}", f"layer: {port.layer}"),
            commands=unset("NCCL_IB_GID_INDEX"),
        )
    rates = {port.rate for port in active if port.rate}
    if len(rates) > 1:
        yield finding(
            "DDP716",
            "info",
            "active ports have different rates",
            "Name those of the fast network in NCCL_IB_HCA.",
            notes=(
                *(f"port {one.port} of {one.device}: {one.rate}" for one in active[:8]),
                "harmless if they are different networks: the slowest that is used sets the pace",
            ),
        )


def fabric(environment: Environment) -> Iterator[Finding]:
    """DDP716: ports of InfiniBand and RoCE devices that are not active."""
    if isinstance(environment.fabric, Unknown):
        return
    some_active = any("ACTIVE" in port.state for port in environment.fabric)
    for port in environment.fabric:
        if "ACTIVE" in port.state:
            continue
        yield finding(
            "DDP716",
            "info" if some_active else "warning",
            f"port {port.port} of {port.device} is not active: {port.state or 'no state'}",
            "Plug it in, or leave it out by NCCL_IB_HCA.",
            notes=(
                f"{port.layer or 'unknown layer'}, {port.rate or 'unknown rate'}",
                *(
                    ("harmless: NCCL takes the ports that are active",)
                    if some_active
                    else ("NCCL falls back to TCP sockets, which are much slower",)
                ),
            ),
            commands=("ibstat",),
        )


def fabric_left_out(environment: Environment) -> Iterator[Finding]:
    """DDP716: NCCL_IB_HCA names none of the ports that are active."""
    variable = environment.variable("NCCL_IB_HCA")
    if variable is None or not variable.value or isinstance(environment.fabric, Unknown):
        return
    active = [port for port in environment.fabric if "ACTIVE" in port.state]
    if not active or any(_nccl_takes(variable.value, port) for port in active):
        return
    unused = environment.lacks_nccl
    yield finding(
        "DDP716",
        "info" if unused else "warning",
        f"{setting(variable.name, variable.value)} takes none of the active ports",
        f"Name some of {', '.join(sorted({port.device for port in active})[:6])}, or none.",
        notes=(
            "it is a list of prefixes, as mlx5_0:1; = before it means exact names, ^ all but these",
            "NCCL falls back to TCP sockets, which are much slower",
            *(("harmless here: torch has no NCCL",) if unused else ()),
            *origin(variable),
        ),
        commands=taken_away(variable),
    )


def _nccl_takes(value: str, port: Fabric) -> bool:
    """As NCCL's parseStringList and matchIfList do (src/misc/utils.cc)."""
    excluding = value.startswith("^")
    rest = value.removeprefix("^")
    exact = rest.startswith("=")
    matches = False
    for one in filter(None, rest.removeprefix("=").split(",")):
        name, _, number = one.partition(":")
        same = port.device == name if exact else port.device.startswith(name)
        matches |= same and number in ("", str(port.port))
    return matches != excluding


def kernel(environment: Environment) -> Iterator[Finding]:
    """DDP718: settings that slow ranks, or that keep people from looking into them."""
    here = environment.kernel
    if isinstance(here, Unknown):
        return
    if here.numa_balancing is True and here.numa_nodes > 1:
        yield finding(
            "DDP718",
            "info",
            f"NUMA balancing is on, with {here.numa_nodes} NUMA nodes",
            "Switch it off while training on GPUs, and bind ranks to their node.",
            notes=("harmless, but NVIDIA says that it costs NCCL speed",),
            commands=("sysctl kernel.numa_balancing=0",),
        )
    release = tuple(int(part) for part in re.findall(r"[0-9]+", here.release)[:2])
    if release < _OLD_KERNEL:
        yield finding(
            "DDP718",
            "warning",
            f"kernel {here.release} is older than {'.'.join(map(str, _OLD_KERNEL))}",
            "Update it: accelerate warns that processes can hang on older ones.",
            notes=("accelerate 1.15: check_os_kernel",),
            certainty="evidence",
        )
    if isinstance(here.ptrace_scope, int) and here.ptrace_scope > 0:
        yield finding(
            "DDP718",
            "info",
            f"kernel.yama.ptrace_scope is {here.ptrace_scope}: only parents may look into a rank",
            "Run `ddpdoctor attach`, py-spy or gdb as root.",
            notes=("harmless: `ddpdoctor run` is the ranks' parent, and needs no ptrace",),
            commands=("sudo ddpdoctor attach",),
        )


def clock(environment: Environment) -> Iterator[Finding]:
    """DDP718: several nodes, and a clock that nobody sets."""
    if isinstance(environment.clock, Unknown) or environment.clock.synchronised:
        return
    if spans_nodes(environment):
        yield finding(
            "DDP718",
            "info",
            "this machine's clock is not synchronised",
            "Start a time daemon, such as chrony, on every node.",
            notes=("harmless for training: but the times in the nodes' logs do not compare",),
            commands=("timedatectl set-ntp true",),
        )


def checkpoint_folder(environment: Environment) -> Iterator[Finding]:
    """DDP717: a folder in which a checkpoint cannot be saved as it should."""
    folder = environment.folder
    if isinstance(folder, Unknown):
        return
    if folder.chosen and not folder.writable:
        yield finding(
            "DDP717",
            "error",
            f"nothing can be written to {_tail(folder.path)}",
            "Name another folder with --checkpoints, or have this one made writable for you.",
            notes=(f"tried in {folder.path}, {folder.filesystem}", "the first save will fail"),
        )
    for works, what, then in (
        (folder.replaces, "replace one file by another", "a reader may find half a checkpoint"),
        (folder.syncs, "fsync", "a checkpoint may be lost when the machine is"),
    ):
        if works is False:
            yield finding(
                "DDP717",
                "warning",
                f"{folder.filesystem} under {_tail(folder.path)} cannot {what}",
                "Save checkpoints on another file system.",
                notes=(f"tried in {folder.path}", then),
            )
    if folder.locks is False:
        yield finding(
            "DDP717",
            "info",
            f"{folder.filesystem} under {_tail(folder.path)} has no locks",
            "Let rank 0 alone build caches, and tell the others by a collective.",
            notes=(f"tried in {folder.path}", "harmless unless ranks lock files"),
        )
    if folder.free < _FULL:
        yield finding(
            "DDP717",
            "warning",
            f"{folder.free // MIB} MiB are left for checkpoints under {_tail(folder.path)}",
            "Make room, or name another folder with --checkpoints.",
            notes=("a save that fails on rank 0 leaves the others waiting, unless it is shared",),
            certainty="evidence",
        )


def _tail(path: str) -> str:
    return path if len(path) <= 24 else f"…{path[-23:]}"
