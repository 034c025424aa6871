"""Two looks at every rank, a second apart, and what they allow to say."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ddpdoctor.attach.processes import FoundJob, RankProcess, existing, find
from ddpdoctor.attach.stacks import Sample, py_spy, sample
from ddpdoctor.catalog import Finding
from ddpdoctor.diagnose.hosts import located
from ddpdoctor.diagnose.stacks import awaited, judge_stacks
from ddpdoctor.evidence import Evidence, Place, RankEvidence, Stuck
from ddpdoctor.postmortem.frames import is_users
from ddpdoctor.report.lives import Attempt, RankLine

PAUSE = 1.0
_AT_ONCE = 8
_IDLE = 0.2
"""Share of the pause that a main thread may be on a processor and still count as waiting."""
_GET_PY_SPY = "there is no py-spy, so no stacks: pip install 'ddpdoctor[attach]'"
_GET_PERMISSION = (
    "the kernel does not let you read these processes: run it as root, or allow it by "
    "sysctl kernel.yama.ptrace_scope=0 (in a container: --cap-add=SYS_PTRACE)"
)


class NothingFound(Exception):
    """No rank runs here; the message says so in one line."""


@dataclass(frozen=True)
class Seen:
    """What was found."""

    attempts: tuple[Attempt, ...]
    findings: tuple[Finding, ...]
    not_seen: tuple[str, ...]


@dataclass(frozen=True)
class Look:
    """Two looks at the ranks of one host."""

    host: str
    """Its name; "" if there is only this one."""
    jobs: tuple[FoundJob, ...]
    hidden: int
    """Processes that would not be looked at."""
    has_spy: bool
    pause: float
    """Seconds between the two."""
    first: dict[int, Sample]
    second: dict[int, Sample]
    """By process."""


def attach(pids: Sequence[int] = (), pause: float = PAUSE) -> Seen:
    """Look at the ranks of this machine, or at those processes and their children.

    Raises NothingFound.
    """
    seen = look(pids, pause)
    if (found := conclude([seen])) is None:
        raise NothingFound(_nothing(pids, seen.hidden))
    return found


def look(pids: Sequence[int] = (), pause: float = PAUSE, host: str = "") -> Look:
    """What the ranks do."""
    jobs, hidden = find(pids)
    spy = py_spy()
    processes = [each.pid for job in jobs for each in job.ranks]
    first = _sample_all(processes, spy)
    time.sleep(pause if processes else 0.0)
    second = _sample_all(processes, spy)
    return Look(host, tuple(jobs), hidden, spy is not None, pause, first, second)


def conclude(looks: Sequence[Look]) -> Seen | None:
    """What they allow to say, of the ranks of all hosts together; None if there are none."""
    attempts: list[Attempt] = []
    findings: list[Finding] = []
    not_seen = [] if all(each.has_spy for each in looks) else [_GET_PY_SPY]
    for job, ranks in _together(looks):
        evidence = _evidence(job.world_size, ranks)
        attempts.append(_attempt(job, ranks, evidence))
        findings += located(judge_stacks(evidence), evidence)
        not_seen += _untold(job, ranks, len(looks))
    if not attempts:
        return None
    return Seen(tuple(attempts), tuple(findings), tuple(dict.fromkeys(not_seen)))


def _together(looks: Sequence[Look]) -> list[tuple[FoundJob, list[_Rank]]]:
    """The jobs of all hosts: those of one name and world size are one, if no rank is there twice.

    Where no variable tells the ranks, each host has numbered its own.
    """
    found: list[tuple[FoundJob, list[_Rank]]] = []
    for each in looks:
        for job in each.jobs:
            ranks = [_Rank(rank, each) for rank in job.ranks]
            if not (ranks := [rank for rank in ranks if not rank.second.is_worker]):
                continue
            numbers = {rank.process.rank for rank in ranks}
            for other, theirs in found:
                same = (other.name, other.world_size) == (job.name, job.world_size)
                counted = job.counted or other.counted
                if same and not counted and numbers.isdisjoint(r.process.rank for r in theirs):
                    theirs += ranks
                    break
            else:
                found.append((job, ranks))
    return [(job, sorted(ranks, key=lambda each: each.process.rank)) for job, ranks in found]


@dataclass(frozen=True)
class _Rank:
    """A rank, and the looks that were taken at it."""

    process: RankProcess
    look: Look

    @property
    def first(self) -> Sample:
        return self.look.first[self.process.pid]

    @property
    def second(self) -> Sample:
        return self.look.second[self.process.pid]


def _nothing(pids: Sequence[int], hidden: int) -> str:
    if missing := [pid for pid in pids if existing(pid) is None]:
        return f"there is no process {missing[0]}"
    where = f"in {', '.join(map(str, pids))} or below" if pids else "on this machine"
    text = f"no process {where} is a rank: none that has loaded torch has RANK and WORLD_SIZE"
    if hidden:
        text += f"; {hidden} processes of others could not be looked at (run it as root)"
    return text


def _sample_all(pids: Iterable[int], spy: str | None) -> dict[int, Sample]:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        futures = {pid: pool.submit(sample, pid, spy) for pid in pids}
    return {pid: future.result() for pid, future in futures.items()}


def _evidence(world_size: int, ranks: list[_Rank]) -> Evidence:
    size = max([world_size, *(each.process.rank + 1 for each in ranks)])
    found = [RankEvidence(number, size) for number in range(size)]
    for each in ranks:
        rank, before, now, pause = (
            found[each.process.rank],
            each.first,
            each.second,
            each.look.pause,
        )
        rank.pid, rank.host = each.process.pid, each.look.host
        if not now.frames:
            continue
        allowed = _IDLE * pause * os.sysconf("SC_CLK_TCK")
        if before.frames == now.frames and now.ticks - before.ticks <= allowed:
            call = awaited(now.frames)
            waiting = () if call is None else (call,)
            rank.stuck = Stuck(0.0, pause, now.frames, _users(now.frames), waiting, awaited=call)
    return Evidence(size, found)


def _attempt(job: FoundJob, ranks: list[_Rank], evidence: Evidence) -> Attempt:
    lines: list[RankLine] = []
    for each in ranks:
        stuck, now = evidence.ranks[each.process.rank].stuck, each.second
        if stuck is not None:
            inside = stuck.waiting[0].op if stuck.waiting else stuck.stack[-1].function
            fate = f"waits in {inside}"
        else:
            fate = "moves" if now.frames else now.why or "its stack is not known"
        lines.append(
            RankLine(
                rank=each.process.rank,
                pid=each.process.pid,
                host=each.look.host,
                fate=f"{fate} (pid {each.process.pid})",
                place=_users(now.frames),
            )
        )
    return Attempt(name=job.name, world_size=evidence.world_size, ranks=tuple(lines))


def _untold(job: FoundJob, ranks: list[_Rank], hosts: int) -> list[str]:
    lines = []
    absent = job.world_size - len({each.process.rank for each in ranks})
    if absent > 0:
        where = "this machine" if hosts == 1 else f"these {hosts} hosts"
        lines.append(
            f"{absent} of the {job.world_size} ranks of {job.name} do not run on {where}, or "
            "not any more"
        )
    if job.counted:
        lines.append("the ranks of mp.spawn are numbered in the order in which they were started")
    if any(each.second.why == "permission denied" for each in ranks):
        lines.append(_GET_PERMISSION)
    return lines


def _users(frames: tuple[Place, ...]) -> Place | None:
    return next((frame for frame in reversed(frames) if is_users(frame.file)), None)
