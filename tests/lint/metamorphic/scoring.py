"""How many findings stay when a program is told otherwise, and who is accused that was not."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ddpdoctor.lint.files import collect
from ddpdoctor.lint.linter import lint
from tests.lint.metamorphic.program import Line, Program, Text, text
from tests.lint.metamorphic.subjects import Subject
from tests.lint.metamorphic.transformations import Transform

Told = dict[tuple[str, Line], bool]
"""Code and line of each finding, and whether it is told as information: that accuses nobody."""


@dataclass
class Score:
    """What one transformation did to the findings."""

    programs: int = 0
    """How many it changed."""
    bugs: int = 0
    """How many stood in these and were found before."""
    lost: list[str] = field(default_factory=list)
    accused: list[str] = field(default_factory=list)
    """Clean programs of which something is said now."""
    noise: list[str] = field(default_factory=list)
    """Findings in buggy programs that were not there before."""

    @property
    def kept(self) -> float:
        """The share of bugs that are still found."""
        return 1 - len(self.lost) / self.bugs if self.bugs else 1.0


def found(files: dict[str, str]) -> Told:
    """What lint says of a program that lies alone in a folder."""
    with tempfile.TemporaryDirectory(prefix="metamorphic-") as folder:
        for name, source in files.items():
            Path(folder, name).write_text(source, encoding="utf-8")
        result = lint(list(collect([folder])))
        assert not result.troubles, result.troubles
        return {(e.code, (Path(e.path).name, e.line)): e.harmless for e in result.diagnostics}


def told_otherwise(program: Program, transform: Transform) -> Text | None:
    """The transformed program; None where there is nothing to transform."""
    changed = program.copy()
    transform(changed)
    is_control = transform.__module__.endswith(".reprinted")
    return text(changed) if is_control or changed.printed != program.printed else None


def score(transform: Transform, chosen: Iterable[Subject]) -> Score:
    """Tell all of `chosen` otherwise, and compare."""
    total = Score()
    for subject in chosen:
        new = told_otherwise(subject.program, transform)
        if new is not None:
            total.programs += 1
            _compare(subject, new, _before(subject), total)
    return total


@cache
def _before(subject: Subject) -> Told:
    return found(subject.sources)


def _compare(subject: Subject, new: Text, before: Told, total: Score) -> None:
    after = found(new.files)
    lines = {
        (code, place): {(code, line) for line in new.origins.get(place, ())}
        for code, place in after
    }
    now = set().union(*lines.values())
    for bug in subject.bugs:
        if bug & before.keys():
            total.bugs += 1
            if not bug & now:
                total.lost.append(f"{subject.name} {_words(bug)}")
    known = {mark for bug in subject.bugs for mark in bug} | before.keys()
    fresh = sorted(x for x, harmless in after.items() if not harmless and not lines[x] & known)
    if fresh and subject.is_clean:
        total.accused.append(f"{subject.name} {_words(fresh)}")
    elif fresh:
        total.noise.append(f"{subject.name} {_words(fresh)}")


def _words(marks: Iterable[tuple[str, Line]]) -> str:
    return ", ".join(f"{code} at {file}:{line}" for code, (file, line) in sorted(marks))
