"""What a command has to say: the one model that every format is rendered from.

A command fills in what it has. JSON is this model as it is; `schema.json` beside it describes it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from pydantic import Field, ValidationError

from ddpdoctor import __version__
from ddpdoctor.catalog import Finding, Severity
from ddpdoctor.evidence import Place
from ddpdoctor.report.excerpts import Excerpt, Kept
from ddpdoctor.report.lives import Attempt
from ddpdoctor.report.output import Page

SCHEMA_VERSION: Final = 4
T = TypeVar("T")
State = Literal["", "good", "noted", "partly", "unseen", "unknown", "bad"]
EndedBy = Literal["job", "doctor", "signal"]


class Case(Kept):
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
    properties: dict[str, str] = Field(default={})


class Group(Kept):
    """Things that belong together: the forms of a pitfall, the ranks of a launch, a file."""

    title: str
    note: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    """What people read of it."""
    states: tuple[State, ...] = ()
    """Of each row; none where rows have none."""
    sentences: int = 0
    """So many columns, the last ones, hold sentences, which a terminal tells below each other."""
    is_detail: bool = False
    """Told where there is room: not in a terminal."""
    cases: tuple[Case, ...] = Field(default=(), exclude=True)
    """What a CI server reads of it."""
    seconds: float | None = Field(default=None, exclude=True)
    properties: dict[str, str] = Field(default={}, exclude=True)


class Report(Kept):
    """One run of a command, complete in itself."""

    schema_version: Literal[4] = SCHEMA_VERSION
    ddpdoctor: str = __version__
    command: str
    subject: tuple[str, ...] = ()
    """The command line that was looked at."""
    machine: str = ""
    """What it ran on, on one line."""
    versions: str = ""
    """Of what was looked at, as in "torch 2.13.0, Python 3.11.7"; of the job, if it was one."""
    directory: str = ""
    """Paths are shown relative to it."""
    started: datetime = Field(default_factory=lambda: datetime.now(UTC))
    seconds: float = 0.0
    verdict: str
    """One line: what was found, counted."""
    failure: str = ""
    """How a job ended badly, where no error that was found is why: one sentence."""
    notes: tuple[str, ...] = ()
    """What explains the verdict, or belongs to it: a line each."""
    findings: tuple[Finding, ...] = ()
    """Of a job the gravest first; of what was read in sources, as they come there."""
    not_seen: tuple[str, ...] = ()
    """What could not be watched or known, a line each."""
    unread: tuple[str, ...] = ()
    """Files of a job whose source there was no time to read: none of what it did was missed."""
    facts: tuple[tuple[str, str], ...] = ()
    """(name, value) of what is known of the machine."""
    groups: tuple[Group, ...] = ()
    to_do: tuple[tuple[str, str, str], ...] = ()
    """(code, what to do, the command to try), besides the cures of the findings."""
    excerpts: tuple[Excerpt, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    """Of a job: its launches, the one that it ended with last."""
    are_jobs: bool = False
    """Each attempt is a job of its own."""
    exit_code: int | None = None
    """Of a job."""
    signal: int | None = None
    """The signal that ended the job."""
    ended_by: EndedBy | None = None
    """"signal": somebody asked the job to end; None: not known, or it goes on."""
    proven_after: float | None = None
    """Seconds from the last rank's blocking to the proof of the deadlock."""
    run_dir: str = ""
    """Where the ranks' logs lie."""
    data: dict[str, Any] = Field(default={})
    """What this command alone has measured, as its own model writes it."""
    pictures: tuple[tuple[str, str], ...] = Field(default=(), exclude=True)
    """(title, SVG) that the command has drawn, escaped."""

    def excerpt_at(self, place: Place | None, cell: int = 0) -> Excerpt | None:
        """The source lines around a place, if they are there."""
        return self._by_line.get((place.file, cell, place.line)) if place is not None else None

    def excerpt_of(self, finding: Finding) -> Excerpt | None:
        """Those around its first place."""
        return self.excerpt_at(finding.place, finding.span.cell if finding.span else 0)

    @cached_property
    def _by_line(self) -> dict[tuple[str, int, int], Excerpt]:
        return {(each.file, each.cell, each.line): each for each in self.excerpts}

    def path(self, place: Place) -> str:
        """Of its file: relative to the working directory where it lies below it."""
        below = f"{self.directory.rstrip('/')}/" if self.directory else ""
        return place.file.removeprefix(below)

    def where(self, finding: Finding) -> str:
        """The line to look at first, as editors jump to it: "train.py:57", "nb.ipynb:cell 3:1:5".

        "" if there is none.
        """
        if (place := finding.place) is None:
            return ""
        cell = f"cell {finding.span.cell}:" if finding.span and finding.span.cell else ""
        column = f":{finding.span.column}" if finding.span else ""
        return f"{self.path(place)}:{cell}{place.line}{column}"

    @property
    def about(self) -> str:
        """The machine, the versions, the doctor and the time, on one line."""
        when = f"{self.started.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        about = self.machine, self.versions, f"ddpdoctor {self.ddpdoctor}", when
        return ", ".join(filter(None, about))

    @property
    def status(self) -> int | None:
        """How the job ended, as Popen.returncode gives it."""
        return -self.signal if self.signal is not None else self.exit_code

    @property
    def severities(self) -> list[Severity]:
        """Of its findings."""
        return [finding.severity for finding in self.findings]


class Unreadable(Exception):
    """A file is no report; the message says which, and why, in one line."""


def earlier(path: Path, command: str, told: Callable[[dict[str, Any]], T]) -> T:
    """What a command's report of before says, as `told` reads its `data`. Raises Unreadable."""
    try:
        if not path.is_file():
            raise Unreadable(f"{path} is no file")
        return told(Report.model_validate_json(path.read_bytes()).data)
    except OSError as error:
        raise Unreadable(f"cannot read {path}: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        why = f"{'.'.join(map(str, first['loc'])) or 'the document'}: {first['msg']}"
        what = f"this version's `{command} --format json`"
        raise Unreadable(f"{path} is no report of {what}: {why}") from error


def render(report: Report, format_: str, page: Page | None = None) -> str:
    """The report in one of `ReportFormat`; `page` is what text is laid out for."""
    text: str = import_module(f"{__package__}.as_{format_}").render(report, page or Page())
    return text
