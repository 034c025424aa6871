"""What one run of `check` found."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib import metadata
from typing import Self

from pydantic import computed_field

from ddpdoctor import __version__
from ddpdoctor.catalog import Cure, Finding, Frozen, Pitfall, Severity, Status, Symptom, Verdict
from ddpdoctor.evidence import named
from ddpdoctor.report.excerpts import Kept
from ddpdoctor.report.gravity import FailOn
from ddpdoctor.report.model import Case, Group, Report, State
from ddpdoctor.report.words import KINDS, count, one_line

_STATUSES: dict[Status, tuple[str, State]] = {
    "recognised": ("reproduced", "noted"),
    "misdiagnosed": ("reproduced", "bad"),
    "not reproduced": ("not reproduced", "unseen"),
    "holds": ("holds", "good"),
    "in part": ("holds in part", "partly"),
    "aid": ("an aid, no cure", "noted"),
    "fails": ("DOES NOT HOLD", "bad"),
    "not checked": ("not checked", "unknown"),
}
_LEGEND = (
    "Recognised: the diagnosis named this failure, on the right ranks and line. Holds: all ranks "
    "ended well, every assertion in them held, and the diagnosis found nothing. In brackets: which "
    "document advises it; `ddpdoctor explain CODE` names it."
)
_DIGITS = re.compile(r"\d+")
_REPORT_IT = (
    "This should not happen. Keep what the ranks wrote, and report it with `ddpdoctor env`."
)


class Heading(Frozen):
    """What a report says about a pitfall before its verdicts."""

    code: str
    title: str
    symptoms: tuple[Symptom, ...]
    severity: Severity
    summary: str
    """One line: what breaks."""
    remedy: str
    """One line: what holds."""


class Summary(Frozen):
    """The verdicts, counted."""

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


class CheckReport(Kept):
    """What one run of `check` found: the `data` of its report."""

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
    """Variants that `--suite quick` did not start: advice, and what needs a launcher of its own."""

    @classmethod
    def of(
        cls,
        pitfalls: Sequence[Pitfall],
        verdicts: Iterable[Verdict],
        *,
        backend: str,
        nproc: int,
        started: datetime,
        seconds: float,
        launcher_seconds: float = 0.0,
        left_out: int = 0,
    ) -> Self:
        """Take down the versions of this machine, and order the verdicts as the catalogue does."""
        places = [(p.code, variant.name) for p in pitfalls for variant in p.variants]
        return cls(
            python=platform.python_version(),
            torch=_torch_version(),
            platform=f"{platform.system()} {platform.machine()}",
            pitfalls=tuple(
                Heading(**pitfall.model_dump(include=set(Heading.model_fields)))
                for pitfall in pitfalls
            ),
            verdicts=tuple(sorted(verdicts, key=lambda v: places.index((v.code, v.variant)))),
            backend=backend,
            nproc=nproc,
            started=started,
            seconds=seconds,
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

    def exit_code(self, fail_on: FailOn, *, asked_by_name: bool) -> int:
        """1 for a problem, each of which is an error, 3 for what was not seen, 0."""
        unchecked = self.summary.not_checked > 0
        return fail_on.exit_code(
            ["error"] * self.summary.problems,
            unseen=unchecked or self.summary.not_reproduced > 0,
            asked_for=unchecked and asked_by_name,
        )


def _torch_version() -> str:
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return "not installed"


def told(report: CheckReport) -> Report:
    """What every format shows of it: a group per pitfall, a row and a case per variant."""
    problems = {
        (verdict.code, verdict.variant): _problem(report, verdict)
        for verdict in report.verdicts
        if verdict.is_problem
    }
    unseen = [
        f"Not checked: {', '.join(names)}: {one_line(reason)}"
        for reason, names in report.not_checked.items()
    ]
    return Report(
        command="check",
        verdict=" ".join(filter(None, (_advice_sentence(report), _count_sentence(report)))),
        notes=(*unseen, _LEGEND),
        findings=tuple(problems.values()),
        groups=tuple(_group(report, heading, problems) for heading in report.pitfalls),
        to_do=tuple(_what_to_do(report)),
        machine=f"{report.nproc} ranks on {report.backend}, torch {report.torch}, "
        f"Python {report.python}, {report.platform}",
        started=report.started,
        seconds=sum(verdict.seconds for verdict in report.verdicts),
        data=report.model_dump(mode="json"),
    )


def _problem(report: CheckReport, verdict: Verdict) -> Finding:
    """What was found of it, or that it went wrong and nothing was found; in any case an error."""
    if verdict.findings:
        return verdict.findings[0].model_copy(update={"severity": "error"})
    heading = next(each for each in report.pitfalls if each.code == verdict.code)
    what = "is not recognised" if verdict.kind == "broken" else "is not mended by its fix"
    return Finding(
        code=heading.code,
        title=f"{heading.title} {what}",
        severity="error",
        certainty="evidence",
        ranks=(),
        places=(),
        cause=f"{_form(verdict)}: {_details(verdict, report.broken(verdict.code))}",
        cure=Cure(text=_REPORT_IT),
    )


def _group(
    report: CheckReport, heading: Heading, problems: Mapping[tuple[str, str], Finding]
) -> Group:
    verdicts, broken = report.of_pitfall(heading.code), report.broken(heading.code)
    return Group(
        title=f"{heading.code} {heading.title}",
        note=f"{', '.join(heading.symptoms).capitalize()}. {heading.summary}",
        columns=("form", "verdict", "what it does", "what was seen"),
        rows=tuple(
            (KINDS[v.kind], _STATUSES[v.status][0], _summary(v), _details(v, broken))
            for v in verdicts
        ),
        states=tuple(_STATUSES[v.status][1] for v in verdicts),
        sentences=2,
        cases=tuple(_case(v, problems.get((v.code, v.variant))) for v in verdicts),
        properties={
            "nproc": str(report.nproc),
            "backend": report.backend,
            "torch": report.torch,
            "python": report.python,
            "ddpdoctor": __version__,
        },
    )


def _summary(verdict: Verdict) -> str:
    return f"{verdict.summary} [{verdict.source}]" if verdict.source else verdict.summary


def _case(verdict: Verdict, problem: Finding | None) -> Case:
    """Advice that does not hold passes, as it does for the exit code."""
    seen = _details(verdict)
    failure, skipped = None, ""
    if problem is not None:
        text = "\n".join(f"{f.code} {_located(f)}" for f in verdict.findings)
        failure = verdict.status.replace(" ", "-"), seen, text
    elif verdict.status in ("not checked", "not reproduced"):
        skipped = f"{verdict.status}: {seen}"
    return Case(
        name=f"{KINDS[verdict.kind]}: {verdict.variant}",
        classname=f"ddpdoctor.{verdict.code}",
        findings=(problem, *verdict.findings[1:]) if problem is not None else (),
        failure=failure,
        skipped=skipped,
        out=f"{verdict.summary}\n{_STATUSES[verdict.status][0]}: {seen}",
        seconds=verdict.seconds,
        properties={"status": verdict.status, "source": verdict.source},
    )


def _located(finding: Finding) -> str:
    """Who is to blame, where, and why: "rank 2 at train.py:57: cause"."""
    return one_line(f"{_who(finding)}: {finding.cause}")


def _who(finding: Finding) -> str:
    who = named(finding.ranks) if finding.ranks else "no single rank"
    return f"{who} at {finding.place}" if finding.place else who


def _details(verdict: Verdict, broken: Verdict | None = None) -> str:
    """The evidence for a verdict, on one line; a race says in how many launches it showed.

    `broken` is the verdict on the broken form: what fails in the same way need not be told twice.
    """
    opening = {"recognised": "recognised", "misdiagnosed": "NOT RECOGNISED"}.get(verdict.status, "")
    if verdict.launches > 1 and (verdict.failed_launches or verdict.kind == "broken"):
        opening += f" in {verdict.failed_launches} of {verdict.launches} launches"
    evidence = verdict.evidence
    if verdict.status != "misdiagnosed" and (finding := _named(verdict)):
        same = broken and broken != verdict and _alike(finding, _named(broken))
        evidence = f"the same failure, {_who(finding)}" if same else _located(finding)
    return one_line(f"{opening}: {evidence}".lstrip(": "))


def _named(verdict: Verdict) -> Finding | None:
    """The finding that is this very pitfall, where it comes first or was asked for."""
    found = verdict.findings if verdict.status == "recognised" else verdict.findings[:1]
    return next((finding for finding in found if finding.code == verdict.code), None)


def _alike(one: Finding, other: Finding | None) -> bool:
    """Whether two findings say the same, but for which rank it was."""
    return other is not None and _DIGITS.sub("", one.cause) == _DIGITS.sub("", other.cause)


def _what_to_do(report: CheckReport) -> Iterator[tuple[str, str, str]]:
    """(code, what to do, the command to try) for each pitfall with a row that went wrong."""
    for heading in report.pitfalls:
        verdicts = report.of_pitfall(heading.code)
        if any(verdict.status == "fails" for verdict in verdicts):
            yield heading.code, heading.remedy, f"ddpdoctor explain {heading.code}"
        if any(verdict.is_problem for verdict in verdicts):
            yield heading.code, _REPORT_IT, f"ddpdoctor check --select {heading.code} --run-dir DIR"


def problem_lines(report: CheckReport) -> Iterator[str]:
    """A line for each verdict that makes `check` fail: what it is of, and the evidence."""
    for verdict in report.verdicts:
        if verdict.is_problem:
            told = _details(verdict, report.broken(verdict.code))
            yield f"{verdict.code} {_form(verdict)}: {told}"


def _form(verdict: Verdict) -> str:
    return f"{KINDS[verdict.kind]} ({one_line(verdict.summary)})"


def _advice_sentence(report: CheckReport) -> str:
    """What became of the advice; "" if none was tried."""
    summary = report.summary
    aids = summary.advice_aids
    tried = summary.advice_holds + summary.advice_in_part + aids + summary.advice_fails
    if not tried:
        return ""
    no_cures = f"{aids} {'is an aid and no cure' if aids == 1 else 'are aids and no cures'}, "
    return (
        f"Of {count(tried, 'piece')} of advice in circulation, "
        f"{summary.advice_holds} {_verb(summary.advice_holds, 'hold')}, "
        f"{summary.advice_in_part} {_verb(summary.advice_in_part, 'hold')} in part"
        f"{', ' + no_cures if aids else ' '}and "
        f"{summary.advice_fails} {_verb(summary.advice_fails, 'do')} not, "
        f"on this machine with torch {report.torch}."
    )


def _count_sentence(report: CheckReport) -> str:
    """The counts that decide the exit code."""
    summary = report.summary
    seen = summary.recognised + summary.misdiagnosed
    fixes = summary.fixes_hold + summary.fixes_fail
    launchers = f", {report.launcher_seconds:.1f} s of it launchers"
    left_out = f", {report.left_out} left out by --suite quick" if report.left_out else ""
    return (
        f"{seen} of {count(seen + summary.not_reproduced, 'failure')} reproduced, "
        f"{summary.recognised} recognised; "
        f"{summary.fixes_hold} of {count(fixes, 'fix')} {_verb(summary.fixes_hold, 'hold')}; "
        f"{count(summary.problems, 'problem')}, {summary.not_checked} not checked"
        f"{left_out} ({report.seconds:.1f} s{launchers if report.launcher_seconds >= 1 else ''})"
    )


def _verb(number: int, verb: str) -> str:
    third = "does" if verb == "do" else f"{verb}s"
    return third if number == 1 else verb
