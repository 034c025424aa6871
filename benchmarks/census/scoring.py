"""A run of lint against the verdicts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.census.verdicts import Census, Verdict

SLACK = 2
"""Lines that a finding may be off: another line of the same statement."""


@dataclass(frozen=True)
class Found:
    """One finding of lint."""

    folder: str
    file: str
    line: int
    code: str
    level: str
    cause: str


@dataclass
class Tally:
    """What a run said of the repositories that were read."""

    lines: int = 0
    pairs: list[tuple[Found, Verdict]] = field(default_factory=list)
    unread: list[Found] = field(default_factory=list)
    """Findings that nobody has judged."""
    unseen: list[tuple[str, Verdict]] = field(default_factory=list)
    """Verdicts without a finding."""

    def of(self, *verdicts: str, level: str = "") -> list[tuple[Found, Verdict]]:
        """The findings judged so, of one level or of both."""
        return [
            pair
            for pair in self.pairs
            if pair[1].verdict in verdicts and level in ("", pair[0].level)
        ]

    def lost(self, *verdicts: str) -> list[tuple[str, Verdict]]:
        """The verdicts of this kind that no finding fits."""
        return [each for each in self.unseen if each[1].verdict in verdicts]

    def precision(self, level: str = "") -> float | None:
        """True ones of the true and false ones; debatable and unread ones count for neither."""
        good, bad = len(self.of("true", "missed", level=level)), len(self.of("false", level=level))
        return good / (good + bad) if good + bad else None

    def recall(self) -> float | None:
        """Defects that are found, of all that a reader knows."""
        good, bad = len(self.of("true", "missed")), len(self.lost("true", "missed"))
        return good / (good + bad) if good + bad else None

    def recall_of_missed(self) -> float | None:
        """Defects found of those that lint did not find when they were read."""
        good, bad = len(self.of("missed")), len(self.lost("missed"))
        return good / (good + bad) if good + bad else None


def lint(root: Path, folder: str) -> list[Found]:
    """What lint says of one repository below `root`. Raises RuntimeError if it says nothing."""
    options = ["--no-cache", "--exit-zero", "--jobs=1", "--format=json"]
    done = subprocess.run(
        [sys.executable, "-m", "ddpdoctor", "lint", *options, folder],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        findings = json.loads(done.stdout)["findings"]
    except (ValueError, KeyError):
        raise RuntimeError(f"{folder}: exit {done.returncode}: {done.stderr[-400:]}") from None
    return [
        Found(
            folder=folder,
            file=each["places"][0]["place"]["file"].removeprefix(f"{folder}/"),
            line=each["places"][0]["place"]["line"],
            code=each["code"],
            level=each["certainty"],
            cause=each["cause"],
        )
        for each in findings
    ]


def add(tally: Tally, one: Census, findings: Sequence[Found]) -> None:
    """Pair the findings of one repository with its verdicts, one to one."""
    tally.lines += one.lines
    free, left = list(one.verdicts), list(findings)
    for slack in range(SLACK + 1):
        for each in tuple(left):
            near = [verdict for verdict in free if _fits(verdict, each, slack)]
            if near:
                best = min(near, key=lambda verdict: verdict.verdict == "missed")
                tally.pairs.append((each, best))
                free.remove(best)
                left.remove(each)
    tally.unread += left
    tally.unseen += [(one.folder, verdict) for verdict in free]


def _fits(verdict: Verdict, found: Found, slack: int) -> bool:
    same = (verdict.file, verdict.code) == (found.file, found.code)
    return same and abs(verdict.line - found.line) <= slack


def table(tally: Tally) -> Iterable[str]:
    """Precision by level, recall, and what changed."""
    yield f"{'level':10}{'true':>6}{'debatable':>11}{'false':>7}{'unread':>8}{'precision':>11}"
    for level in ("certain", "likely", ""):
        counts = [
            len(tally.of(*verdicts, level=level))
            for verdicts in (("true", "missed"), ("debatable",), ("false",))
        ]
        unread = sum(level in ("", each.level) for each in tally.unread)
        yield (
            f"{level or 'all':10}{counts[0]:6}{counts[1]:11}{counts[2]:7}{unread:8}"
            f"{_share(tally.precision(level)):>11}"
        )
    wrong = len(tally.of("false"))
    per = f", {wrong / tally.lines * 20_000:.3f} per 20 000 lines" if tally.lines else ""
    yield f"false ones: {wrong}{per}"
    found = len(tally.of("missed"))
    missed = found + len(tally.lost("missed"))
    yield f"recall: {_share(tally.recall())} of the defects known; of {missed} once missed {found}"
    yield f"true ones lost: {len(tally.lost('true'))}; false ones gone: {len(tally.lost('false'))}"


def details(tally: Tally) -> Iterable[str]:
    """Everything that is not as it should be, by name."""
    groups: tuple[tuple[str, Iterable[str]], ...] = (
        ("unread", (_told(each.folder, each, each.level, each.cause) for each in tally.unread)),
        ("false", (_told(f.folder, f, f.level, v.why) for f, v in tally.of("false"))),
        ("true, lost", (_told(folder, v, "", v.why) for folder, v in tally.lost("true"))),
        ("missed, found", (_told(f.folder, f, f.level, v.why) for f, v in tally.of("missed"))),
        ("missed, still", (_told(folder, v, "", v.why) for folder, v in tally.lost("missed"))),
    )
    for title, lines in groups:
        yield f"{title}:"
        yield from lines


def _told(folder: str, at: Found | Verdict, level: str, why: str) -> str:
    return f"    {at.code} {folder}/{at.file}:{at.line} {f'[{level}] ' * bool(level)}{why}"


def _share(share: float | None) -> str:
    return "none" if share is None else f"{share:.1%}"
