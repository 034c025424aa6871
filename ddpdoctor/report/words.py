"""The words that the formats for people share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ddpdoctor.catalog import Finding, Kind, Status, Verdict

if TYPE_CHECKING:
    from ddpdoctor.report.check import CheckReport

KINDS: dict[Kind, str] = {"broken": "broken", "documented": "advice", "fix": "fix"}

STATUSES: dict[Status, str] = {
    "recognised": "reproduced",
    "misdiagnosed": "reproduced",
    "not reproduced": "not reproduced",
    "holds": "holds",
    "in part": "holds in part",
    "aid": "an aid, no cure",
    "fails": "DOES NOT HOLD",
    "not checked": "not checked",
}

_DIGITS = re.compile(r"\d+")
_MOST_RUNS = 12
_SPECIAL_IN_MARKDOWN = re.compile(r"([\\`*_\[\]<>|#~&])")

REPORT_IT = "This should not happen. Keep what the ranks wrote, and report it with `ddpdoctor env`."


def ranks(numbers: Sequence[int]) -> str:
    """Ranks in words: "rank 2", "ranks 0-3, 7"."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    spans = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    more = sum(map(len, runs[_MOST_RUNS:]))
    others = f" and {more} more" if more else ""
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(spans[:_MOST_RUNS])}{others}"


def cut_short(numbers: Sequence[int]) -> list[str]:
    """What is not known where these ranks could not write all that happened, if there are any."""
    if not numbers:
        return []
    return [
        f"no room was left for the evidence of {ranks(numbers)} (is the disk full?): nothing is "
        "concluded from what is not there"
    ]


def one_line(text: str) -> str:
    """Text of somebody else's on one line, unable to move the cursor or to colour anything."""
    text = " ".join(text.split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def plain_markdown(text: str) -> str:
    """Text on one line with nothing in it that Markdown or HTML would act upon."""
    return _SPECIAL_IN_MARKDOWN.sub(r"\\\1", one_line(text))


def located(finding: Finding) -> str:
    """Who is to blame, where, and why: "rank 2 at train.py:57: cause"."""
    return one_line(f"{_who(finding)}: {finding.cause}")


def _who(finding: Finding) -> str:
    who = ranks(finding.ranks) if finding.ranks else "no single rank"
    return f"{who} at {finding.place}" if finding.place else who


def details(verdict: Verdict, broken: Verdict | None = None) -> str:
    """The evidence for a verdict, on one line; a race says in how many launches it showed.

    `broken` is the verdict on the broken form: what fails in the same way need not be told twice.
    """
    opening = {"recognised": "recognised", "misdiagnosed": "NOT RECOGNISED"}.get(verdict.status, "")
    if verdict.launches > 1 and (verdict.failed_launches or verdict.kind == "broken"):
        opening += f" in {verdict.failed_launches} of {verdict.launches} launches"
    evidence = verdict.evidence
    if verdict.status != "misdiagnosed" and (finding := _named(verdict)):
        same = broken and broken != verdict and _alike(finding, _named(broken))
        evidence = f"the same failure, {_who(finding)}" if same else located(finding)
    return one_line(f"{opening}: {evidence}".lstrip(": "))


def _named(verdict: Verdict) -> Finding | None:
    """The finding that is this very pitfall, where it comes first or was asked for."""
    found = verdict.findings if verdict.status == "recognised" else verdict.findings[:1]
    return next((finding for finding in found if finding.code == verdict.code), None)


def _alike(one: Finding, other: Finding | None) -> bool:
    """Whether two findings say the same, but for which rank it was."""
    return other is not None and _DIGITS.sub("", one.cause) == _DIGITS.sub("", other.cause)


def what_to_do(report: CheckReport) -> Iterator[tuple[str, str, str]]:
    """(code, what to do, the command to try) for each pitfall with a row that went wrong."""
    for heading in report.pitfalls:
        verdicts = report.of_pitfall(heading.code)
        if any(verdict.status == "fails" for verdict in verdicts):
            yield heading.code, heading.remedy, f"ddpdoctor explain {heading.code}"
        if any(verdict.is_problem for verdict in verdicts):
            yield heading.code, REPORT_IT, f"ddpdoctor check --select {heading.code} --run-dir DIR"


def problem_lines(report: CheckReport) -> Iterator[str]:
    """A line for each verdict that makes `check` fail: what it is of, and the evidence."""
    for verdict in report.verdicts:
        if verdict.is_problem:
            form = f"{verdict.code} {KINDS[verdict.kind]} ({one_line(verdict.summary)})"
            yield f"{form}: {details(verdict, report.broken(verdict.code))}"


def advice_sentence(report: CheckReport) -> str:
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


def count_sentence(report: CheckReport) -> str:
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


def count(number: int, noun: str) -> str:
    """A number of things: "1 fix", "2 fixes", "0 errors"."""
    plural = f"{noun}es" if noun.endswith("x") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def _verb(number: int, verb: str) -> str:
    third = "does" if verb == "do" else f"{verb}s"
    return third if number == 1 else verb
