"""Limits that a control group sets, of version 1, version 2 or both, at any level above us."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeVar

from ddpdoctor.environment.facts.machine import Machine

T = TypeVar("T")

_HIERARCHIES = "sys/fs/cgroup"
# Version 1 writes "no limit" as the largest page-aligned number of 63 bits.
_NO_LIMIT = 1 << 62


def cpu_quota(machine: Machine) -> float | None:
    """CPUs' worth of time that the tightest group grants; None if none of them limits it."""
    quotas = [
        *_limits(machine, "", _quota_v2),
        *_limits(machine, "cpu", _quota_v1),
    ]
    return min(quotas, default=None)


def throttled(machine: Machine) -> float:
    """Seconds in which the quota of any group has kept its processes from their CPUs so far."""
    held = [
        *_limits(machine, "", lambda folder: _held(folder, "throttled_usec", 1e6)),
        *_limits(machine, "cpu", lambda folder: _held(folder, "throttled_time", 1e9)),
    ]
    return max(held, default=0.0)


def cpuset(machine: Machine) -> int | None:
    """CPUs of the largest group that can be seen, a container's own in one; None without any."""
    sizes = [
        *_limits(machine, "", lambda folder: _listed(folder / "cpuset.cpus.effective")),
        *_limits(machine, "cpuset", lambda folder: _listed(folder / "cpuset.cpus")),
    ]
    return max(sizes, default=None)


def memory_limit(machine: Machine) -> int | None:
    """Bytes that the tightest group allows; None if none of them limits it."""
    limits = [
        *_limits(machine, "", lambda folder: _bound(folder / "memory.max")),
        *_limits(machine, "memory", lambda folder: _bound(folder / "memory.limit_in_bytes")),
    ]
    return min(limits, default=None)


def memory_left(machine: Machine) -> int | None:
    """Bytes that the fullest group may still take; None if none of them limits it.

    Files that are cached but not mapped count as left: the kernel gives them up first.
    """
    left = [
        *_limits(machine, "", lambda folder: _memory_left(folder, _V2)),
        *_limits(machine, "memory", lambda folder: _memory_left(folder, _V1)),
    ]
    return min(left, default=None)


def tasks(machine: Machine) -> tuple[int, int] | None:
    """Processes and threads that the fullest group allows, and has; None if none limits them."""
    limits = [*_limits(machine, "", _tasks), *_limits(machine, "pids", _tasks)]
    return min(limits, key=lambda limit: limit[0] - limit[1], default=None)


def _limits(machine: Machine, controller: str, read: Callable[[Path], T | None]) -> Iterator[T]:
    for folder in _folders(machine, controller):
        try:
            limit = read(folder)
        except (OSError, ValueError):
            continue  # the root group has no such file, nor has one without the controller
        if limit is not None:
            yield limit


def _folders(machine: Machine, controller: str) -> Iterator[Path]:
    """The folders of our group and of all above it; controller "" is version 2's one hierarchy.

    Within a container the group's path may be the host's, which does not exist there: what is left
    then is the mount itself, which is our group.
    """
    try:
        lines = machine.read("proc/self/cgroup").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controller not in controllers.split(","):
            continue
        inside = PurePosixPath(group.lstrip("/"))
        for mount in _mounts(machine, controllers):
            for level in (inside, *inside.parents):
                if (folder := mount / level).is_dir():
                    yield folder


def _mounts(machine: Machine, controllers: str) -> Iterator[Path]:
    top = machine.root / _HIERARCHIES
    names = ("unified", "") if not controllers else (controllers, *controllers.split(","))
    for name in dict.fromkeys(names):
        if (top / name).is_dir():
            yield top / name
            return


def _quota_v2(folder: Path) -> float | None:
    quota, period = (folder / "cpu.max").read_text().split()
    return None if quota == "max" else int(quota) / int(period)


def _quota_v1(folder: Path) -> float | None:
    quota = int((folder / "cpu.cfs_quota_us").read_text())
    return None if quota <= 0 else quota / int((folder / "cpu.cfs_period_us").read_text())


def _held(folder: Path, name: str, per_second: float) -> float | None:
    lines = dict(line.split() for line in (folder / "cpu.stat").read_text().splitlines())
    return int(lines[name]) / per_second if name in lines else None


def _listed(file: Path) -> int | None:
    """How many numbers a list like "0-3,8" has; None of an empty one."""
    spans = [part.split("-") for part in file.read_text().strip().split(",") if part]
    return sum(int(span[-1]) - int(span[0]) + 1 for span in spans) or None


def _tasks(folder: Path) -> tuple[int, int] | None:
    allowed = _bound(folder / "pids.max")
    return None if allowed is None else (allowed, int((folder / "pids.current").read_text()))


@dataclass(frozen=True)
class _Names:
    """What the files of a group, and the lines of its memory.stat, are called."""

    limits: tuple[str, ...]
    usage: str
    cached: tuple[str, ...]
    mapped: str


_V1 = _Names(
    ("memory.limit_in_bytes",),
    "memory.usage_in_bytes",
    ("total_inactive_file", "total_active_file"),
    "total_mapped_file",
)
_V2 = _Names(
    ("memory.max", "memory.high"), "memory.current", ("inactive_file", "active_file"), "file_mapped"
)


def _memory_left(folder: Path, names: _Names) -> int | None:
    bounds = [_bound(folder / name) for name in names.limits]
    limit = min((bound for bound in bounds if bound is not None), default=None)
    if limit is None:
        return None
    lines = (folder / "memory.stat").read_text().splitlines()
    stat = {name: int(number) for name, number in (line.split() for line in lines)}
    given_up = max(0, sum(stat[name] for name in names.cached) - stat[names.mapped])
    return max(0, limit - int((folder / names.usage).read_text()) + given_up)


def _bound(file: Path) -> int | None:
    text = file.read_text().strip()
    limit = _NO_LIMIT if text == "max" else int(text)
    return None if limit >= _NO_LIMIT else limit
