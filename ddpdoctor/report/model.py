"""What a command has to say: the one model that every format is rendered from.

A command fills in what it has. `FORMATS` are found by name: a new format is one file with a
`render(report)`, and its name here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Final

from ddpdoctor import __version__

if TYPE_CHECKING:
    from ddpdoctor.catalog import Finding
    from ddpdoctor.evidence import Place
    from ddpdoctor.report.run.model import Attempt, Excerpt

FORMATS: Final = {
    "junit": "ddpdoctor.report.as_junit",
    "sarif": "ddpdoctor.report.as_sarif",
    "markdown": "ddpdoctor.report.as_markdown",
    "html": "ddpdoctor.report.html",
    "perfetto": "ddpdoctor.report.as_perfetto",
}


@dataclass(frozen=True)
class Case:
    """One thing that was looked at, and what came of it, as a CI server counts it."""

    name: str
    classname: str
    findings: tuple[Finding, ...] = ()
    """It fails by each of them that is more than mere information."""
    failure: tuple[str, str, str] | None = None
    """What else it fails by: (type, message, text)."""
    skipped: str = ""
    """Why it could not be looked at, if so."""
    out: str = ""
    seconds: float | None = None
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Group:
    """Things that belong together: the forms of a pitfall, the ranks of a launch, a file."""

    title: str
    note: str = ""
    columns: tuple[str, ...] = ()
    rows: Sequence[Sequence[str]] = ()
    """What people read of it."""
    loud: frozenset[int] = frozenset()
    """The rows whose second cell is to be seen."""
    cases: Sequence[Case] = ()
    """What a CI server reads of it."""
    seconds: float | None = None
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """One run of a command, complete in itself."""

    command: str
    verdict: str
    """One line: what was found, counted."""
    findings: Sequence[Finding] = ()
    """The gravest first."""
    groups: Sequence[Group] = ()
    not_seen: Sequence[str] = ()
    to_do: Sequence[tuple[str, str, str]] = ()
    """(code, what to do, the command to try), besides the cures of the findings."""
    facts: Sequence[tuple[str, str]] = ()
    """(name, value) of what is known of the machine."""
    subject: str = ""
    """The command line that was looked at."""
    machine: str = ""
    """What it ran on, on one line."""
    excerpts: Sequence[Excerpt] = ()
    spans: Sequence[tuple[int, int, int]] = ()
    """For each finding, where that is known: first column, last line, column behind the end."""
    pictures: Sequence[tuple[str, str]] = ()
    """(title, SVG) that the command has drawn, escaped."""
    attempts: Sequence[Attempt] = ()
    """Of a job: its launches, the last one last."""
    proven_after: float | None = None
    directory: str = ""
    """Paths are shown relative to it."""
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    seconds: float = 0.0
    ddpdoctor: str = __version__

    def excerpt_at(self, place: Place | None) -> Excerpt | None:
        """The source lines around a place, if they are there."""
        return self._by_line.get((place.file, place.line)) if place is not None else None

    @cached_property
    def _by_line(self) -> dict[tuple[str, int], Excerpt]:
        return {(each.file, each.line): each for each in self.excerpts}

    def shown(self, place: Place) -> str:
        """A place as a path: relative to the working directory where it lies below it."""
        file = place.file
        if self.directory:
            file = file.removeprefix(f"{self.directory.rstrip('/')}/")
        return f"{file}:{place.line}"

    @property
    def about(self) -> str:
        """The doctor, the machine and the time, on one line."""
        when = f"{self.started.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        return ", ".join(filter(None, (self.machine, f"ddpdoctor {self.ddpdoctor}", when)))


def render(report: Report, format_: str) -> str:
    """The report in one of FORMATS."""
    text: str = import_module(FORMATS[format_]).render(report)
    return text
