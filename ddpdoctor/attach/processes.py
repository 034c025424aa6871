"""Which processes of this machine are ranks, and which of them belong together."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "LOCAL_RANK")
_SIZES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
_JOB = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "PMIX_NAMESPACE")
_LARGEST_RANK = 1_000_000


@dataclass(frozen=True)
class RankProcess:
    """A process that is a rank."""

    pid: int
    rank: int
    name: str
    """What it was started as, shortened."""


@dataclass(frozen=True)
class FoundJob:
    """Ranks of one world, as far as they run on this machine."""

    name: str
    world_size: int
    ranks: tuple[RankProcess, ...]
    counted: bool = False
    """The ranks are numbered in the order in which they were started: no variable tells them."""


@dataclass(frozen=True)
class Process:
    """A process that holds torch."""

    pid: int
    parent: int
    started: float
    command: tuple[str, ...]
    environ: Mapping[str, str]

    def number(self, names: Iterable[str]) -> int | None:
        """The first of these variables that is a number."""
        values = (self.environ.get(name, "") for name in names)
        return next((int(v) for v in values if v.isdigit() and int(v) < _LARGEST_RANK), None)

    @property
    def spawned(self) -> bool:
        """Started by multiprocessing in a fresh interpreter."""
        return any("multiprocessing" in word and "spawn_main" in word for word in self.command)


def find(wanted: Iterable[int] = ()) -> tuple[list[FoundJob], int]:
    """The jobs of this machine, or those of the `wanted` processes and their descendants.

    Also how many processes could not be looked at for want of permission.
    """
    pids = list(wanted)
    seen, hidden = _look(_with_descendants(pids))
    jobs = jobs_of(seen)
    if not jobs and pids:
        jobs = [_counted(process, [process]) for process in seen.values()]
    return jobs, hidden


def jobs_of(seen: Mapping[int, Process]) -> list[FoundJob]:
    """The ranks among processes that hold torch, and which of them belong together."""
    told = {process.pid: process for process in seen.values() if _is_told(process, seen)}
    by_job: dict[tuple[str, ...], list[Process]] = {}
    for process in told.values():
        key = tuple(process.environ.get(name, "") for name in _JOB)
        by_job.setdefault(key, []).append(process)
    jobs = []
    for processes in by_job.values():
        first = _rank_0_that_launched(processes, told, seen)
        told.update((process.pid, process) for process in first)
        jobs.append(_told(processes, first))
    siblings: dict[int, list[Process]] = {}
    for process in seen.values():
        if process.parent in seen and not _lives_below(process, told, seen):
            is_parent = any(other.parent == process.pid for other in seen.values())
            if process.pid not in told and not is_parent:
                siblings.setdefault(process.parent, []).append(process)
    jobs += [_counted(seen[parent], children) for parent, children in siblings.items()]
    return sorted(jobs, key=lambda job: job.ranks[0].pid)


def _look(pids: Iterable[int] | None) -> tuple[dict[int, Process], int]:
    """Those that have torch in their memory; and how many would not be looked at."""
    seen, hidden = {}, 0
    for process in psutil.process_iter() if pids is None else map(existing, pids):
        if process is None or process.pid == os.getpid():
            continue
        try:
            with process.oneshot():
                if "python" not in f"{process.name()} {process.exe()}".lower():
                    continue
                if _holds_torch(process.pid):
                    seen[process.pid] = Process(
                        process.pid,
                        process.ppid(),
                        process.create_time(),
                        tuple(process.cmdline()),
                        process.environ(),
                    )
        except (psutil.AccessDenied, PermissionError):
            hidden += 1
        except (psutil.Error, OSError):
            continue
    return seen, hidden


def _with_descendants(wanted: Iterable[int]) -> list[int] | None:
    pids = list(wanted)
    if not pids:
        return None
    for pid in list(pids):
        process = existing(pid)
        if process is not None:
            pids += [child.pid for child in process.children(recursive=True)]
    return list(dict.fromkeys(pids))


def existing(pid: int) -> psutil.Process | None:
    """The process of that number, if there is one."""
    try:
        return psutil.Process(pid)
    except (psutil.Error, ValueError, OverflowError):  # of numbers that no process can have
        return None


def _holds_torch(pid: int) -> bool:
    """Whether libtorch is mapped: a launcher of mpirun's or srun's has the variables, not torch."""
    return b"libtorch" in Path(f"/proc/{pid}/maps").read_bytes()


def _is_told(process: Process, seen: Mapping[int, Process]) -> bool:
    """Whether its environment says that it is a rank, and did not come from a rank above it.

    Data-loader workers inherit their rank's variables. torchrun itself has none.
    """
    rank = process.number(_RANKS)
    if rank is None or process.number(_SIZES) is None:
        return False
    above = seen.get(process.parent)
    return above is None or above.number(_RANKS) != rank


def _lives_below(
    process: Process, ranks: Mapping[int, Process], seen: Mapping[int, Process]
) -> bool:
    while process.parent in seen:
        if process.parent in ranks:
            return True
        process = seen[process.parent]
    return False


def _rank_0_that_launched(
    processes: list[Process], told: Mapping[int, Process], seen: Mapping[int, Process]
) -> list[Process]:
    """Lightning's main process starts the others and is rank 0 itself: no variable says so."""
    parents = {process.parent for process in processes}
    if any(process.number(_RANKS) == 0 for process in processes) or len(parents) != 1:
        return []
    return [seen[pid] for pid in parents if pid in seen and pid not in told]


def _told(processes: list[Process], first: list[Process]) -> FoundJob:
    sizes = [size for process in processes if (size := process.number(_SIZES)) is not None]
    ranks = [RankProcess(process.pid, 0, _name(process)) for process in first]
    ranks += [
        RankProcess(process.pid, process.number(_RANKS) or 0, _name(process))
        for process in processes
    ]
    ranks.sort(key=lambda each: (each.rank, each.pid))
    port = processes[0].environ.get("MASTER_PORT", "")
    return FoundJob(
        f"{ranks[0].name}{f' (port {port})' if port else ''}",
        max([*sizes, ranks[-1].rank + 1]),
        tuple(ranks),
    )


def _counted(parent: Process, children: list[Process]) -> FoundJob:
    """The children of mp.spawn: they have their rank from an argument, which is not seen."""
    ordered = sorted(children, key=lambda each: (each.started, each.pid))
    ranks = tuple(RankProcess(each.pid, n, _name(parent)) for n, each in enumerate(ordered))
    return FoundJob(_name(parent), len(ranks), ranks, counted=len(ranks) > 1)


def _name(process: Process) -> str:
    """The script or the module, without the interpreter and its options."""
    words = list(process.command[1:])
    while words and words[0].startswith("-") and words[0] not in ("-m", "-c"):
        words.pop(0)
    if words[:1] == ["-m"]:
        words.pop(0)
    return Path(words[0]).name[:60] if words else f"process {process.pid}"
