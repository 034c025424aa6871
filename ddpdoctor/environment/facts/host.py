"""CPUs, memory, shared memory and limits."""

from __future__ import annotations

import os
import resource
import tempfile
from pathlib import Path
from typing import TypeVar

import psutil

from ddpdoctor.environment.facts import cgroup
from ddpdoctor.environment.facts.machine import Machine
from ddpdoctor.environment.model import (
    OF_A_RANK,
    Absent,
    Cpus,
    Fabric,
    Limit,
    Limits,
    Memory,
    SharedMemory,
)

T = TypeVar("T")

_SHARED_MEMORY = "dev/shm"
_SPARED = 8
"""A trial takes no more than this part of the memory that is left."""
_INFINIBAND = "sys/class/infiniband"


def cpus(machine: Machine) -> Cpus:
    """How many CPUs there are, and how many of them may be used."""
    model, cores, sockets = _described(machine)
    return Cpus(
        count=os.cpu_count() or 1,
        affinity=machine.find(_affinity),
        allowed=_limit_of_a_group(machine.find(cgroup.cpuset)),
        quota=_limit_of_a_group(machine.find(cgroup.cpu_quota)),
        model=model,
        cores=cores,
        sockets=sockets,
    )


def _limit_of_a_group(limit: T | None) -> T | Absent:
    return Absent(absent="no control group limits it") if limit is None else limit


def _described(machine: Machine) -> tuple[str, int | None, int | None]:
    """Model, cores and sockets, as far as /proc/cpuinfo has them."""
    try:
        text = machine.read("proc/cpuinfo")
    except OSError:
        return "", None, None
    told = [
        {name.strip(): value.strip() for name, _, value in pairs}
        for block in text.split("\n\n")
        if (pairs := [line.partition(":") for line in block.splitlines()])
    ]
    cores = {(one["physical id"], one["core id"]) for one in told if "core id" in one}
    sockets = {socket for socket, _ in cores}
    model = next((one["model name"] for one in told if "model name" in one), "")
    return model, len(cores) or None, len(sockets) or None


def _affinity(_: Machine) -> int:
    return len(os.sched_getaffinity(0))


def memory(machine: Machine) -> Memory:
    """Main memory, and what of it the control group allows."""
    main = psutil.virtual_memory()
    return Memory(
        total=main.total,
        available=main.available,
        limit=_limit_of_a_group(machine.find(cgroup.memory_limit)),
        left=_limit_of_a_group(machine.find(cgroup.memory_left)),
    )


def shared_memory(machine: Machine) -> SharedMemory | Absent:
    """Size and free space of /dev/shm, and whether a rank can use it. Raises OSError."""
    folder: Path = machine.root / _SHARED_MEMORY
    if not folder.is_dir():
        return Absent(absent=f"there is no {folder}")
    space = os.statvfs(folder)
    free = space.f_bavail * space.f_frsize
    tried = max(1, min(free, OF_A_RANK, memory(machine).free // _SPARED))
    return SharedMemory(
        size=space.f_blocks * space.f_frsize,
        free=free,
        writable=machine.find(lambda _: _can_hold(folder, 1)),
        tried=tried,
        takes_it=machine.find(lambda _: _can_hold(folder, tried)),
    )


def _can_hold(folder: Path, size: int) -> bool:
    # The memory is taken and given back: a control group may allow less than the file system has.
    try:
        with tempfile.TemporaryFile(prefix=".ddpdoctor-", dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, size)
    except OSError:
        return False
    return True


def limits(machine: Machine) -> Limits:
    """Limits of this process and of its control group."""
    tasks = machine.find(cgroup.tasks)
    allowed, used = tasks if isinstance(tasks, tuple) else (tasks, None)
    return Limits(
        open_files=_limit(resource.RLIMIT_NOFILE),
        locked_memory=_limit(resource.RLIMIT_MEMLOCK),
        processes=_limit(resource.RLIMIT_NPROC),
        file_size=_limit(resource.RLIMIT_FSIZE),
        tasks_allowed=_limit_of_a_group(allowed),
        tasks_used=used,
        exempt=_is_root_outside(machine),
    )


def _is_root_outside(machine: Machine) -> bool:
    """Whether this user is root without the user namespace: the kernel limits none of his forks."""
    user = os.getuid()
    try:
        lines = machine.read("proc/self/uid_map").splitlines()
    except OSError:
        return user == 0
    spans = [[int(number) for number in line.split()] for line in lines]
    return any(
        user - inside + outside == 0 for inside, outside, n in spans if 0 <= user - inside < n
    )


def _limit(which: int) -> Limit:
    soft, hard = (
        None if bound == resource.RLIM_INFINITY else bound for bound in resource.getrlimit(which)
    )
    return Limit(soft=soft, hard=hard)


def infiniband(machine: Machine) -> tuple[str, ...]:
    """Names of the InfiniBand and RoCE devices."""
    folder = machine.root / _INFINIBAND
    return tuple(sorted(device.name for device in folder.iterdir())) if folder.is_dir() else ()


def fabric(machine: Machine) -> tuple[Fabric, ...]:
    """The ports of those devices."""
    return tuple(
        Fabric(
            device=port.parent.parent.name,
            port=int(port.name),
            state=_line(port / "state"),
            rate=_line(port / "rate"),
            layer=_line(port / "link_layer"),
            gids=tuple(
                sorted(
                    int(gid.name)
                    for gid in (port / "gids").glob("[0-9]*")
                    if _line(gid).strip("0:")
                )
            ),
        )
        for port in sorted((machine.root / _INFINIBAND).glob("*/ports/[0-9]*"))
    )


def _line(file: Path) -> str:
    # An address that is not there is a file that cannot be read.
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
