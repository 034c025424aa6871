"""A run directory of ours: what the ranks wrote, until they ended or were ended.

A log may be torn, and may be missing; files of others are passed over. How the ranks ended is told
by the report that `run` leaves there, else by their parents' notes, else by their own last words.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from ddpdoctor.diagnose import diagnose
from ddpdoctor.diagnose.case import is_casualty
from ddpdoctor.evidence import (
    MOST_RANKS,
    REPORT,
    Evidence,
    Fate,
    RankEvidence,
    RankReader,
    attempt_number,
    boot,
    logs,
    noted_deaths,
    open_file,
    world_size,
)
from ddpdoctor.postmortem.material import Material
from ddpdoctor.report import words
from ddpdoctor.report.run import RankLine, RunReport

_LARGEST_REPORT = 1 << 28
_ENDING = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL})


def read(folder: Path) -> Material | None:
    """What the ranks wrote; None if this is no run directory of ours. Raises OSError."""
    attempts = [entry for entry in folder.iterdir() if attempt_number(entry.name) is not None]
    attempts = [entry for entry in attempts if entry.is_dir() and logs(entry)]
    if not attempts and logs(folder):
        attempts = [folder]  # an attempt was named, or what `check --run-dir` has kept
    if not attempts:
        return None
    attempts.sort(key=lambda entry: max(p.stat().st_mtime for p in logs(entry).values()))
    home = attempts[0].parent if attempts[0] != folder else folder
    codes, report = noted_deaths(home), _report(home)
    found = []
    for attempt in attempts:
        evidence, troubles = _evidence(attempt)
        evidence.attempt = attempt_number(attempt.name) or 0
        lines = {line.rank: line for line in _lines(report, attempt.name)}
        _add_fates(evidence, lines, codes)
        found.append((attempt.name, evidence, troubles))
    # A world that joined tells more than a launcher's or a straggler's last words.
    found.sort(key=lambda each: any(rank.groups for rank in each[1].ranks))
    _, last, troubles = found[-1]
    last.exit_code = report.exit_code if report is not None else None
    return Material(
        tuple((name, evidence) for name, evidence, _ in found),
        lambda: diagnose(last),
        (*troubles, *_still_running(last)),
    )


def _evidence(folder: Path) -> tuple[Evidence, list[str]]:
    numbers = [number for number in logs(folder) if number < MOST_RANKS]
    size = max(world_size(folder), *(number + 1 for number in numbers))
    readers = []
    for number in numbers:
        reader = RankReader(folder, number, size)
        reader.poll()
        reader.close()
        readers.append(reader)
    known = {reader.evidence.rank: reader.evidence for reader in readers}
    ranks = [known.get(number) or RankEvidence(number, size) for number in range(size)]
    silent = [rank.rank for rank in ranks if rank.pid == 0]
    torn = [reader.evidence.rank for reader in readers if reader.unreadable]
    troubles = []
    if silent:
        troubles.append(f"{words.ranks(silent)} of {size} wrote nothing")
    if torn:
        troubles.append(f"lines that cannot be read stand in the log of {words.ranks(torn)}")
    troubles += words.cut_short([rank.rank for rank in ranks if rank.cut_short])
    return Evidence(size, ranks, damaged=bool(torn)), troubles


def _report(folder: Path) -> RunReport | None:
    try:
        with open_file(folder / REPORT) as file:
            return RunReport.model_validate_json(file.read(_LARGEST_REPORT))
    except (OSError, ValueError, RecursionError):
        return None


def _lines(report: RunReport | None, attempt: str) -> tuple[RankLine, ...]:
    same = (a.ranks for a in (report.attempts if report else ()) if a.name == attempt)
    return next(same, ())


def _add_fates(evidence: Evidence, lines: dict[int, RankLine], codes: dict[int, int]) -> None:
    failed = any(r.exceptions and not is_casualty(r.exceptions[-1]) for r in evidence.ranks)
    for rank in evidence.ranks:
        line = lines.get(rank.rank)
        if line is not None and line.ended_at is not None and 0 <= (line.signal or 0) <= 64:
            rank.fate = Fate(
                rank.rank,
                line.pid,
                line.exit_code,
                line.signal,
                line.ended_at,
                killed_by_us=line.was_ended,
                out_of_memory=line.out_of_memory,
            )
        elif rank.pid in codes:
            rank.fate = _noted(rank, codes[rank.pid], failed)
        elif rank.exceptions or rank.exiting is not None:
            code = 1 if rank.exceptions else 0
            rank.fate = Fate(rank.rank, rank.pid, code, None, rank.last_event)


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
        lines.append(f"{words.ranks(living)} still {verb}: what is said here may change")
    if unknown:
        lines.append(f"how {words.ranks(unknown)} ended is not known: nobody wrote it down")
    return lines


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
