"""What ranks cost, what this machine or its control group has left, and how many of them fit.

Asked before the first fork: nine thousand ranks that were merely tried filled 23 GiB, and the
kernel killed other people's jobs.
"""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from ddpdoctor.environment.facts import cgroup
from ddpdoctor.environment.facts.machine import Machine
from ddpdoctor.launch.job import NoRoom

_KIB, _MIB = 1 << 10, 1 << 20
_TENTH = 10
"""The share of what is left that stays for others."""
_CAPABILITIES = 1 << 21 | 1 << 24
"""CAP_SYS_ADMIN and CAP_SYS_RESOURCE, either of which lifts the limit on a user's processes."""


@dataclass(frozen=True)
class Cost:
    """What processes need, at most."""

    memory: int = 0
    """Bytes that they share with nobody."""
    tasks: int = 0
    """Processes and threads."""
    shared_memory: int = 0
    """Bytes of /dev/shm."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.memory + other.memory,
            self.tasks + other.tasks,
            self.shared_memory + other.shared_memory,
        )

    def __mul__(self, number: int) -> Cost:
        return Cost(self.memory * number, self.tasks * number, self.shared_memory * number)


# Measured with torch 2.13 for CPU, over the quick suite's proofs on 4 ranks each.
FORKED = Cost(memory=48 * _MIB, tasks=22, shared_memory=128 * _KIB)
"""A forked rank: 5 MiB and 2 threads as it is born, 12 and 5 once it trains with DDP; 42 MiB, 21
processes and threads, and 112 KiB in the proofs that take most of each."""
FRESH = Cost(memory=256 * _MIB, tasks=22, shared_memory=128 * _KIB)
"""A rank that is an interpreter of its own."""
SERVER = Cost(memory=256 * _MIB, tasks=8)
"""The server and the keepers: 232 MiB."""

DESCRIPTORS = 40
"""Of a rank, which has 8 with DDP and 33 with data loaders, beside one for each peer in a group."""
_GROUPS = 4
"""Process groups that a rank may be a member of at a time."""


@dataclass(frozen=True)
class _Supply:
    """One of the things that ranks need."""

    what: str
    need: int
    """Of all ranks that were asked for, and of what comes with them."""
    left: int
    most: int
    """How many ranks that is enough for."""


def judge(
    ranks: int, each: Cost, besides: Cost | None = None, machine: Machine | None = None
) -> None:
    """Raise NoRoom, which says how many would fit, unless so many ranks fit here now.

    `besides` is what is needed with them, whatever their number.
    """
    supplies = _supplies(machine or Machine(os.environ), ranks, each, besides or Cost())
    scarce = min(supplies, key=lambda supply: supply.most)
    if scarce.most >= ranks:
        return
    need = "1 rank needs" if ranks == 1 else f"{ranks} ranks need"
    fit = f"at most {scarce.most} can be started" if scarce.most > 0 else "none can be started"
    amount = _bytes if "memory" in scarce.what else str
    raise NoRoom(
        f"{need} {amount(scarce.need)} {scarce.what}, and here {amount(scarce.left)} are left: "
        f"{fit}"
    )


def _supplies(machine: Machine, ranks: int, each: Cost, besides: Cost) -> Iterator[_Supply]:
    need = each * ranks + besides

    def supply(what: str, asked: int, one: int, fixed: int, left: int) -> _Supply:
        return _Supply(what, asked, left, max(0, left - fixed) // one)

    memory = _memory_left(machine)
    memory -= memory // _TENTH
    yield supply("of memory", need.memory, each.memory, besides.memory, memory)
    tasks = _tasks_left(machine)
    yield supply("processes and threads", need.tasks, each.tasks, besides.tasks, tasks)
    if (shared := _shared_memory_left(machine)) is not None:
        yield supply(
            "of shared memory (/dev/shm)",
            need.shared_memory,
            each.shared_memory,
            besides.shared_memory,
            shared,
        )
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors != resource.RLIM_INFINITY:
        asked = DESCRIPTORS + _GROUPS * ranks
        yield supply("descriptors on each", asked, _GROUPS, DESCRIPTORS, descriptors)


def _memory_left(machine: Machine) -> int:
    lines = machine.read("proc/meminfo").splitlines()
    (available,) = (int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    limit = cgroup.memory_left(machine)
    return available * _KIB if limit is None else min(available * _KIB, limit)


def _tasks_left(machine: Machine) -> int:
    of_kernel = min(int(machine.read(f"proc/sys/kernel/{n}")) for n in ("pid_max", "threads-max"))
    left = [of_kernel - int(machine.read("proc/loadavg").split()[3].partition("/")[2])]
    if (group := cgroup.tasks(machine)) is not None:
        left.append(group[0] - group[1])
    of_user, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if of_user != resource.RLIM_INFINITY and not _is_privileged(machine):
        left.append(of_user - _tasks_of_user())
    return max(0, min(left))


def _is_privileged(machine: Machine) -> bool:
    status = machine.read("proc/self/status").splitlines()
    (effective,) = (int(line.split()[1], 16) for line in status if line.startswith("CapEff:"))
    return os.getuid() == 0 or bool(effective & _CAPABILITIES)


def _tasks_of_user() -> int:
    me = os.getuid()
    found = psutil.process_iter(["uids", "num_threads"])
    return sum(p.info["num_threads"] or 0 for p in found if p.info["uids"].real == me)


def _shared_memory_left(machine: Machine) -> int | None:
    try:
        system = os.statvfs(machine.root / "dev/shm")
    except OSError:
        return None
    return system.f_bavail * system.f_frsize


def _bytes(number: int) -> str:
    return f"{number / (_MIB << 10):.1f} GiB" if number >= _MIB << 10 else f"{number // _MIB} MiB"


def kills_for_memory() -> int:
    """How many processes the kernel has killed so far because memory was short."""
    try:
        lines = Path("/proc/vmstat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))


def refused(files: Iterable[Path]) -> str:
    """In what words a process was refused memory or a thread, by what it wrote; "" if it was not.

    What is limited beforehand, as by `ulimit -v`, kills nobody: the allocation fails.
    """
    for file in files:
        try:
            told = file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if words := next((each for each in _REFUSALS if each in told), ""):
            return words
    return ""


_REFUSALS = (
    os.strerror(errno.ENOMEM),
    os.strerror(errno.EAGAIN),
    "MemoryError",
    "std::bad_alloc",
    "failed to map segment",
    "can't start new thread",
    "Thread creation failed",
)
"""The words of the C library, Python, C++, the dynamic linker and OpenMP."""


def is_full(folder: Path) -> bool:
    """Whether nothing more can be written there."""
    try:
        system = os.statvfs(folder)
    except OSError:
        return False
    return system.f_bavail == 0 or (system.f_files > 0 and system.f_favail == 0)
