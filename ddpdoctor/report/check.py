"""What one run of `check` found.

CheckReport.of(pitfalls, verdicts, backend="gloo", nproc=4, started=..., seconds=12.3)
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import datetime
from importlib import metadata
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, computed_field

from ddpdoctor import __version__
from ddpdoctor.catalog import Pitfall, Severity, Symptom, Verdict
from ddpdoctor.report.model import Case, Group, Report
from ddpdoctor.report.words import (
    KINDS,
    STATUSES,
    advice_sentence,
    count_sentence,
    details,
    located,
    what_to_do,
)

SCHEMA_VERSION: Final = 1


class Heading(BaseModel):
    """What a report says about a pitfall before its verdicts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: str
    title: str
    symptoms: tuple[Symptom, ...]
    severity: Severity
    summary: str
    """One line: what breaks."""
    remedy: str
    """One line: what holds."""


class Summary(BaseModel):
    """The verdicts, counted."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    recognised: int
    """Broken forms that failed here and were named, on the right ranks and line."""
    misdiagnosed: int
    not_reproduced: int
    advice_holds: int
    advice_in_part: int
    advice_aids: int = 0
    advice_fails: int
    fixes_hold: int
    fixes_fail: int
    problems: int
    """What makes `check` fail: misdiagnosed broken forms, and fixes that do not hold."""
    not_checked: int


class CheckReport(BaseModel):
    """One run of `check`, complete in itself.

    Unknown fields are ignored when it is read back, so that an older doctor reads a newer one.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    schema_version: Literal[1] = SCHEMA_VERSION
    ddpdoctor: str
    python: str
    torch: str
    platform: str
    backend: str
    nproc: int
    started: datetime
    seconds: float
    pitfalls: tuple[Heading, ...]
    verdicts: tuple[Verdict, ...]
    launcher_seconds: float = 0.0
    """Of these, what was started by real launchers took so long; all the rest came before."""
    left_out: int = 0
    """Variants that `--suite quick` did not start, for they need a launcher of their own."""

    @classmethod
    def of(
        cls,
        pitfalls: Sequence[Pitfall],
        verdicts: Sequence[Verdict],
        *,
        backend: str,
        nproc: int,
        started: datetime,
        seconds: float,
        launcher_seconds: float = 0.0,
        left_out: int = 0,
    ) -> CheckReport:
        """Take down the versions of this machine, and order the verdicts as the catalogue does."""
        place = {
            (pitfall.code, variant.name): (p, v)
            for p, pitfall in enumerate(pitfalls)
            for v, variant in enumerate(pitfall.variants)
        }
        return cls(
            ddpdoctor=__version__,
            python=platform.python_version(),
            torch=_torch_version(),
            platform=f"{platform.system()} {platform.machine()}",
            backend=backend,
            nproc=nproc,
            started=started,
            seconds=seconds,
            pitfalls=tuple(
                Heading(**pitfall.model_dump(include=set(Heading.model_fields)))
                for pitfall in pitfalls
            ),
            verdicts=tuple(sorted(verdicts, key=lambda v: place[v.code, v.variant])),
            launcher_seconds=launcher_seconds,
            left_out=left_out,
        )

    @computed_field  # type: ignore[prop-decorator]
    @property
    def summary(self) -> Summary:
        """The verdicts, counted."""

        def count(kind: str, *statuses: str) -> int:
            return sum(v.kind == kind and v.status in statuses for v in self.verdicts)

        return Summary(
            recognised=count("broken", "recognised"),
            misdiagnosed=count("broken", "misdiagnosed"),
            not_reproduced=count("broken", "not reproduced"),
            advice_holds=count("documented", "holds"),
            advice_in_part=count("documented", "in part"),
            advice_aids=count("documented", "aid"),
            advice_fails=count("documented", "fails"),
            fixes_hold=count("fix", "holds"),
            fixes_fail=count("fix", "in part", "fails"),
            problems=sum(verdict.is_problem for verdict in self.verdicts),
            not_checked=sum(verdict.status == "not checked" for verdict in self.verdicts),
        )

    @computed_field  # type: ignore[prop-decorator]
    @property
    def not_checked(self) -> dict[str, tuple[str, ...]]:
        """By reason, the "CODE variant" that could not be performed here."""
        reasons: dict[str, tuple[str, ...]] = {}
        for verdict in self.verdicts:
            if verdict.status == "not checked":
                name = f"{verdict.code} {verdict.variant}"
                reasons[verdict.evidence] = (*reasons.get(verdict.evidence, ()), name)
        return reasons

    def of_pitfall(self, code: str) -> tuple[Verdict, ...]:
        """The verdicts of one pitfall, in the order of its variants."""
        return tuple(verdict for verdict in self.verdicts if verdict.code == code)

    def broken(self, code: str) -> Verdict | None:
        """The verdict on the broken form of a pitfall."""
        return next((v for v in self.of_pitfall(code) if v.kind == "broken"), None)

    def exit_code(self, *, asked_by_name: bool, strict: bool) -> int:
        """0, 1 for a problem, 3 for what was asked for (by name, or by --strict) and not seen."""
        if self.summary.problems:
            return 1
        unchecked = self.summary.not_checked and (asked_by_name or strict)
        unseen = self.summary.not_reproduced and strict
        return 3 if unchecked or unseen else 0


def _torch_version() -> str:
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return "not installed"


def told(report: CheckReport) -> Report:
    """What every format shows of it: a group per pitfall, a row and a case per variant."""
    problems = [verdict for verdict in report.verdicts if verdict.is_problem]
    return Report(
        command="check",
        verdict=" ".join(filter(None, (advice_sentence(report), count_sentence(report)))),
        findings=tuple(each for verdict in problems for each in verdict.findings[:1]),
        groups=tuple(_group(report, heading) for heading in report.pitfalls),
        to_do=tuple(what_to_do(report)),
        machine=f"{report.nproc} ranks on {report.backend}, torch {report.torch}, "
        f"Python {report.python}, {report.platform}",
        started=report.started,
        seconds=sum(verdict.seconds for verdict in report.verdicts),
        ddpdoctor=report.ddpdoctor,
    )


def _group(report: CheckReport, heading: Heading) -> Group:
    verdicts, broken = report.of_pitfall(heading.code), report.broken(heading.code)
    loud = {n for n, each in enumerate(verdicts) if each.is_problem or each.status == "fails"}
    return Group(
        title=f"{heading.code} {heading.title}",
        note=f"{', '.join(heading.symptoms).capitalize()}. {heading.summary}",
        columns=("form", "verdict", "what it does", "what was seen", "source"),
        rows=[
            (KINDS[v.kind], STATUSES[v.status], v.summary, details(v, broken), v.source)
            for v in verdicts
        ],
        loud=frozenset(loud),
        cases=[_case(verdict) for verdict in verdicts],
        properties={
            "nproc": str(report.nproc),
            "backend": report.backend,
            "torch": report.torch,
            "python": report.python,
            "ddpdoctor": report.ddpdoctor,
        },
    )


def _case(verdict: Verdict) -> Case:
    """Advice that does not hold passes, as it does for the exit code."""
    seen = details(verdict)
    failure, skipped = None, ""
    if verdict.is_problem:
        text = "\n".join(f"{f.code} {located(f)}" for f in verdict.findings)
        failure = verdict.status.replace(" ", "-"), seen, text
    elif verdict.status in ("not checked", "not reproduced"):
        skipped = f"{verdict.status}: {seen}"
    return Case(
        name=f"{KINDS[verdict.kind]}: {verdict.variant}",
        classname=f"ddpdoctor.{verdict.code}",
        findings=verdict.findings if verdict.is_problem else (),
        failure=failure,
        skipped=skipped,
        out=f"{verdict.summary}\n{STATUSES[verdict.status]}: {seen}",
        seconds=verdict.seconds,
        properties={"status": verdict.status, "source": verdict.source},
    )
