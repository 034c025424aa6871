"""A run directory of ours: what the ranks wrote, until they ended or were ended.

A log may be torn, and may be missing; files of others are passed over. How the ranks ended is told
by the report that `run` leaves there, else by their parents' notes, else by their own last words.
Of a job on several hosts each host has left one.
"""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ddpdoctor.diagnose import diagnose, prove_deadlock
from ddpdoctor.diagnose.case import INTERRUPTIONS, is_casualty
from ddpdoctor.evidence import (
    HOST,
    MOST_RANKS,
    REPORT,
    Evidence,
    ExceptionRecord,
    Fate,
    RankEvidence,
    RankReader,
    Stuck,
    attempt_number,
    boot,
    logs,
    named,
    noted_deaths,
    open_file,
    world_size,
)
from ddpdoctor.postmortem.material import Material, NothingToRead
from ddpdoctor.report import words
from ddpdoctor.report.lives import RankLine
from ddpdoctor.report.model import Report

_LARGEST_REPORT = 1 << 28
_ENDING = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL})


@dataclass(frozen=True)
class _Part:
    """An attempt's logs in one folder, and what this folder tells of how ranks ended."""

    folder: Path
    codes: dict[int, int]
    """Exit codes by process."""
    report: Report | None
    name: str


def read(folders: Sequence[Path]) -> Material | None:
    """What the ranks wrote, into one folder or into one of each host; hosts may share one, too.

    None if one of them is no run directory of ours. Raises NothingToRead if they are of different
    jobs, and OSError.
    """
    attempts: dict[str, list[_Part]] = {}
    for folder in folders:
        beside = [each for each in sorted(folder.glob(f"{HOST}*")) if each.is_dir()]
        if not (parts := [part for each in (folder, *beside) for part in _parts(each)]):
            return None
        for part in parts:
            attempts.setdefault(part.name, []).append(part)
    found = [(name, *_together(parts)) for name, parts in attempts.items()]
    # Ranks of an attempt may outlive the next one's: the launcher's own count comes first.
    found.sort(
        key=lambda each: (attempt_number(each[0]) or 0, max(map(_written, attempts[each[0]])))
    )
    # A world that joined tells more than a launcher's or a straggler's last words.
    found.sort(key=lambda each: _has_met(each[1]))
    name, last, troubles = found[-1]
    reports = [part.report for part in attempts[name] if part.report is not None]
    codes = [report.exit_code for report in reports]
    last.exit_code = next(filter(None, codes), codes[0] if codes else None)
    absent = {*folders} - {part.folder for part in attempts[name]}
    absent -= {parent for part in attempts[name] for parent in part.folder.parents}
    faults: list[str] = []
    return Material(
        tuple((name, evidence) for name, evidence, _ in found),
        lambda: diagnose(last, faults),
        (*troubles, *(f"{each} holds no rank of {name}" for each in absent), *_still_running(last)),
        next((report for report in reports if report.ended_by), next(iter(reports), None)),
        faults,
    )


def _has_met(evidence: Evidence) -> bool:
    """Or tries to, where the launcher has started the ranks again: so it goes on from there."""
    return any(
        rank.groups or (evidence.attempt and rank.joining is not None) for rank in evidence.ranks
    )


def _parts(folder: Path) -> list[_Part]:
    attempts = [entry for entry in folder.iterdir() if attempt_number(entry.name) is not None]
    attempts = [entry for entry in attempts if entry.is_dir() and logs(entry)]
    if not attempts and logs(folder):
        attempts = [folder]  # an attempt was named, or what `check --run-dir` has kept
    if not attempts:
        return []
    codes, report = noted_deaths(folder), _report(folder)
    return [_Part(attempt, codes, report, attempt.name) for attempt in attempts]


def _written(part: _Part) -> float:
    return max(path.stat().st_mtime for path in logs(part.folder).values())


def _together(parts: list[_Part]) -> tuple[Evidence, list[str]]:
    """The ranks of an attempt, from the folders of all hosts, on the clock of the first rank.

    That the clocks of hosts are brought together by what they show on the wall makes no false
    proof, however wrong they are: a rank that waits in its last line waited until it was ended, so
    what the others await of it has not come, and never would have.
    """
    where: dict[int, _Part] = {}
    for part in parts:
        for number in logs(part.folder):
            if number in where:
                raise NothingToRead(
                    f"rank {number} wrote both into {where[number].folder} and into {part.folder}: "
                    "these are runs of different jobs"
                )
            if number < MOST_RANKS:
                where[number] = part
    size = max(*(world_size(part.folder) for part in parts), *(number + 1 for number in where), 1)
    readers: dict[int, RankReader] = {}
    clock = None
    for number in sorted(where):
        readers[number] = reader = RankReader(where[number].folder, number, size, clock)
        reader.poll()
        reader.close()
        clock = clock or reader.own_clock
    known = {number: reader.evidence for number, reader in readers.items()}
    ranks = [known.get(number) or RankEvidence(number, size) for number in range(size)]
    silent = [rank.rank for rank in ranks if rank.pid == 0]
    torn = [number for number, reader in readers.items() if reader.unreadable]
    untimed = [number for number, reader in readers.items() if reader.shift is None]
    troubles = []
    if silent:
        troubles.append(f"{named(silent)} of {size} wrote nothing")
    if torn:
        troubles.append(f"lines that cannot be read stand in the log of {named(torn)}")
    if untimed:
        troubles.append(f"the clock of {named(untimed)} is not known: no deadlock is proven")
    troubles += words.cut_short([rank.rank for rank in ranks if rank.cut_short])
    evidence = Evidence(size, ranks, damaged=bool(torn), one_time=not untimed)
    evidence.attempt = attempt_number(parts[0].name) or 0
    _add_fates(evidence, where, readers)
    return evidence, troubles


def _report(folder: Path) -> Report | None:
    try:
        with open_file(folder / REPORT) as file:
            return Report.model_validate_json(file.read(_LARGEST_REPORT))
    except (OSError, ValueError, RecursionError):
        return None


def _lines(report: Report | None, attempt: str) -> tuple[RankLine, ...]:
    same = (a.ranks for a in (report.attempts if report else ()) if a.name == attempt)
    return next(same, ())


def _add_fates(evidence: Evidence, where: dict[int, _Part], readers: dict[int, RankReader]) -> None:
    failed = any(r.exceptions and not is_casualty(r.exceptions[-1]) for r in evidence.ranks)
    lines = {
        (part.folder, line.rank): line
        for part in where.values()
        for line in _lines(part.report, part.name)
    }
    by_doctor = any(p.report is not None and p.report.ended_by == "doctor" for p in where.values())
    interrupted = [r.exceptions[-1].time for r in evidence.ranks if _was_interrupted(r)]
    ended = 0.0 if by_doctor else min(interrupted, default=math.inf)
    for number, part in where.items():
        rank = evidence.ranks[number]
        if _lost_others(rank) > ended:
            # It waited still when those were ended that it waited for, and lost them.
            fate = Fate(number, rank.pid, 1, None, rank.last_event, killed_by_us=True)
            evidence.ranks[number] = _unbroken(rank, rank.stuck or _broken_off(rank), fate)
            continue
        line = lines.get((part.folder, number))
        if line is not None and line.ended_at is not None and 0 <= (line.signal or 0) <= 64:
            rank.fate = Fate(
                number,
                line.pid,
                line.exit_code,
                line.signal,
                line.ended_at + (readers[number].shift or 0.0),
                killed_by_us=line.was_ended,
                out_of_memory=line.out_of_memory,
            )
        elif rank.pid in part.codes:
            rank.fate = _noted(rank, part.codes[rank.pid], failed)
        elif rank.exceptions or rank.exiting is not None:
            code = 1 if rank.exceptions else 0
            rank.fate = Fate(number, rank.pid, code, None, rank.last_event)
        if _was_interrupted(rank):
            rank.fate = _from_outside(rank.fate)
    if not any(map(_has_failed, evidence.ranks)):
        _judge_as_they_stood(evidence)


def _judge_as_they_stood(evidence: Evidence) -> None:
    """Who is ended from outside is lost by the others, and what these say then is no cause.

    Those that waited at one time, none of whom could go on, would have waited for ever.
    """
    if prove_deadlock(evidence) is not None:
        return
    ranks = [
        rank if _ended_itself(rank) else _unbroken(rank, _wait(rank), _from_outside(rank.fate))
        for rank in evidence.ranks
    ]
    proof = prove_deadlock(replace(evidence, ranks=ranks))
    if proof is not None and not proof.gone:
        evidence.ranks = ranks


def _ended_itself(rank: RankEvidence) -> bool:
    if rank.fate is None or rank.fate.killed_by_us:
        return False
    return not _lost_others(rank)


def _from_outside(fate: Fate | None) -> Fate | None:
    return fate and replace(fate, killed_by_us=True)


def _wait(rank: RankEvidence) -> Stuck | None:
    """Its last wait for others; None if it has called something since."""
    wait = rank.stuck if rank.stuck is not None and rank.stuck.waiting else rank.stood
    if wait is None or any(call.begun > wait.seen for call in rank.collectives[-1:]):
        return None
    return wait


def _unbroken(rank: RankEvidence, stuck: Stuck | None, fate: Fate | None) -> RankEvidence:
    """As it stood before others were ended, and it with them."""
    return replace(rank, exceptions=[], thrown=[], stuck=stuck, fate=fate)


def _broken_off(rank: RankEvidence) -> Stuck | None:
    """Where it waited when one of these came: the last may be noted when it has left the call."""
    errors = [*_on_its_way_out(rank), *rank.exceptions[-1:]]
    for pause in reversed(rank.pauses):
        if any(pause.since <= error.time <= pause.seen for error in errors):
            return pause
    return None


def _on_its_way_out(rank: RankEvidence) -> list[ExceptionRecord]:
    """What came out of its last call: a rank that was ended may have no time to end with it."""
    return [
        thrown
        for thrown in rank.thrown[-1:]
        if not any(call.begun > thrown.time for call in rank.collectives[-1:])
    ]


def _has_failed(rank: RankEvidence) -> bool:
    """By itself."""
    failures = (each for each in rank.exceptions[-1:] if not is_casualty(each))
    return any(failures) and not _was_interrupted(rank)


def _lost_others(rank: RankEvidence) -> float:
    """When it did, if that is what it says last; else 0."""
    last = [*_on_its_way_out(rank), *rank.exceptions[-1:]]
    return next((each.time for each in last[-1:] if is_casualty(each)), 0.0)


def _was_interrupted(rank: RankEvidence) -> bool:
    """By Ctrl-C, or what sends the same."""
    return any(each.type in INTERRUPTIONS for each in rank.exceptions[-1:])


def _noted(rank: RankEvidence, code: int, failed: bool) -> Fate:
    """By its parent's note; a rank that was waiting when it was ended was ended for that."""
    if code >= 0:
        return Fate(rank.rank, rank.pid, code, None, rank.last_event)
    blameless = -code in _ENDING and (failed or rank.stuck is not None)
    return Fate(rank.rank, rank.pid, None, -code, rank.last_event, killed_by_us=blameless)


def _still_running(evidence: Evidence) -> list[str]:
    here = boot()
    living = [
        rank.rank
        for rank in evidence.ranks
        if rank.fate is None and rank.pid > 0 and rank.boot == here and _is_alive(rank.pid)
    ]
    endless = [rank.rank for rank in evidence.ranks if rank.fate is None and rank.pid]
    unknown = [rank for rank in endless if rank not in living]
    lines = []
    if living:
        verb = "run" if len(living) > 1 else "runs"
        lines.append(f"{named(living)} still {verb}: what is said here may change")
    if unknown:
        lines.append(f"how {named(unknown)} ended is not known: nobody wrote it down")
    return lines


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
