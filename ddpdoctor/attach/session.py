"""Two looks at every rank, a second apart, and what they allow to say."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ddpdoctor.attach.processes import Job, RankProcess, find
from ddpdoctor.attach.stacks import Sample, py_spy, sample
from ddpdoctor.catalog import Finding
from ddpdoctor.diagnose.stacks import awaited, judge_stacks
from ddpdoctor.evidence import Evidence, Place, RankEvidence, Stuck
from ddpdoctor.postmortem.frames import is_users
from ddpdoctor.report.run import Attempt, RankLine

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


def attach(pids: Sequence[int] = (), pause: float = PAUSE) -> Seen:
    """Look at the ranks of this machine, or at those processes and their children.

    Raises NothingFound.
    """
    jobs, hidden = find(pids)
    if not jobs:
        raise NothingFound(_nothing(pids, hidden))
    spy = py_spy()
    processes = [each.pid for job in jobs for each in job.ranks]
    first = _sample_all(processes, spy)
    time.sleep(pause)
    second = _sample_all(processes, spy)
    attempts, findings = [], []
    not_seen = [] if spy else [_GET_PY_SPY]
    for job in jobs:
        ranks = [each for each in job.ranks if not second[each.pid].is_worker]
        if not ranks:
            continue
        evidence = _evidence(job, ranks, first, second, pause)
        attempts.append(_attempt(job, ranks, evidence, second))
        findings += judge_stacks(evidence)
        not_seen += _untold(job, ranks, second)
    if not attempts:
        raise NothingFound(_nothing(pids, hidden))
    return Seen(tuple(attempts), tuple(findings), tuple(dict.fromkeys(not_seen)))


def _nothing(pids: Sequence[int], hidden: int) -> str:
    where = f"in {', '.join(map(str, pids))} or below" if pids else "on this machine"
    text = f"no process {where} is a rank: none that has loaded torch has RANK and WORLD_SIZE"
    if hidden:
        text += f"; {hidden} processes of others could not be looked at (run it as root)"
    return text


def _sample_all(pids: Iterable[int], spy: str | None) -> dict[int, Sample]:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        futures = {pid: pool.submit(sample, pid, spy) for pid in pids}
    return {pid: future.result() for pid, future in futures.items()}


def _evidence(
    job: Job,
    ranks: list[RankProcess],
    first: dict[int, Sample],
    second: dict[int, Sample],
    pause: float,
) -> Evidence:
    size = max([job.world_size, *(each.rank + 1 for each in ranks)])
    found = [RankEvidence(number, size) for number in range(size)]
    allowed = _IDLE * pause * os.sysconf("SC_CLK_TCK")
    for each in ranks:
        rank, before, now = found[each.rank], first[each.pid], second[each.pid]
        rank.pid = each.pid
        if not now.frames:
            continue
        if before.frames == now.frames and now.ticks - before.ticks <= allowed:
            call = awaited(now.frames)
            waiting = () if call is None else (call,)
            rank.stuck = Stuck(0.0, pause, now.frames, _users(now.frames), waiting, awaited=call)
    return Evidence(size, found)


def _attempt(
    job: Job, ranks: list[RankProcess], evidence: Evidence, second: dict[int, Sample]
) -> Attempt:
    lines: list[RankLine] = []
    for each in ranks:
        stuck, now = evidence.ranks[each.rank].stuck, second[each.pid]
        if stuck is not None:
            inside = stuck.waiting[0].op if stuck.waiting else stuck.stack[-1].function
            fate = f"waits in {inside}"
        else:
            fate = "moves" if now.frames else now.why or "its stack is not known"
        lines.append(
            RankLine(
                rank=each.rank,
                pid=each.pid,
                fate=f"{fate} (pid {each.pid})",
                place=_users(now.frames),
            )
        )
    return Attempt(name=job.name, world_size=evidence.world_size, ranks=tuple(lines))


def _untold(job: Job, ranks: list[RankProcess], second: dict[int, Sample]) -> list[str]:
    lines = []
    here = {each.rank for each in ranks}
    absent = job.world_size - len(here)
    if absent > 0:
        lines.append(
            f"{absent} of the {job.world_size} ranks of {job.name} do not run on this machine, or "
            "not any more"
        )
    if job.counted:
        lines.append("the ranks of mp.spawn are numbered in the order in which they were started")
    if any(second[each.pid].why == "permission denied" for each in ranks):
        lines.append(_GET_PERMISSION)
    return lines


def _users(frames: tuple[Place, ...]) -> Place | None:
    return next((frame for frame in reversed(frames) if is_users(frame.file)), None)
