"""The words that the formats for people share, on findings about a job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from ddpdoctor.catalog import Finding, RankPlace
from ddpdoctor.evidence import signal_name
from ddpdoctor.report.model import Report
from ddpdoctor.report.run.model import Attempt, RankLine, RunReport
from ddpdoctor.report.words import count, one_line, ranks

_CERTAINTY = {
    "proven": "proven",
    "evidence": "by evidence, not proven",
    "certain": "read in the source, not observed",
}


@dataclass(frozen=True)
class Row:
    """What some ranks did at one line, in columns."""

    who: str
    place: str
    function: str
    doing: str
    waits: str

    def __iter__(self) -> Iterator[str]:
        return iter((self.who, self.place, self.function, self.doing, self.waits))


def headline(report: Report | RunReport, finding: Finding) -> str:
    """How sure it is: "deadlock proven 0.7 s after the last rank blocked"."""
    waits = any(place.waits_for for place in finding.places)
    if finding.certainty != "proven" or not waits:
        return _CERTAINTY.get(finding.certainty, finding.certainty)
    if report.proven_after is None:
        return "deadlock proven"
    return f"deadlock proven {report.proven_after:.1f} s after the last rank blocked"


def rows(finding: Finding) -> list[Row]:
    """One row for all ranks that did the same at the same line, in the order of the finding."""
    together: dict[tuple[object, ...], list[RankPlace]] = {}
    for place in finding.places:
        key = (place.place, place.doing, place.waits_for)
        together.setdefault(key, []).append(place)
    return [_row(finding, same) for same in together.values()]


def _row(finding: Finding, same: list[RankPlace]) -> Row:
    numbers = sorted({number for each in same for number in each.ranks})
    first = same[0]
    place = first.place
    waits = ""
    if first.waits_for:
        verb = "waits" if len(numbers) == 1 else "wait"
        waits = f"{verb} for {ranks(first.waits_for).partition(' ')[2]}"
    hosts = tuple(dict.fromkeys(host for each in same for host in each.hosts))
    return Row(
        who=f"{ranks(numbers)}{on(hosts)}" if numbers else "",
        place=one_line(str(place)) if place else "",
        function=one_line(_short(place.function)) if place else "",
        doing=one_line(first.doing),
        waits=waits,
    )


def on(hosts: Sequence[str]) -> str:
    """Where ranks run: " on node02", " on node01, node02", " on 40 hosts"; "" if it is not told."""
    if not hosts:
        return ""
    return f" on {', '.join(map(one_line, hosts)) if len(hosts) < 4 else f'{len(hosts)} hosts'}"


def _short(qualified: str) -> str:
    """The name of a function as people call it: without the functions around it."""
    return qualified.rpartition("<locals>.")[2]


def remedy(finding: Finding) -> str:
    """The cure, the commands to try, and the page that tells more."""
    more = f"ddpdoctor explain {finding.code}"
    return one_line(" ".join((finding.cure.text, *finding.cure.commands, more)))


def outcome(report: RunReport) -> str:
    """How the job ended, in a few words."""
    if report.ended_by == "doctor":
        return "ended by the doctor"
    if report.ended_by == "signal":
        return "ended by a signal from outside"
    if report.signal is not None:
        return f"ended by {signal_name(report.signal)}"
    if report.exit_code is None:
        return ""
    return "ended well" if report.exit_code == 0 else f"exit code {report.exit_code}"


def summary(report: RunReport) -> str:
    """The counts, and how the job ended: "1 error, 2 warnings; 4 ranks, ended by the doctor"."""
    parts = [count(number, noun) for number, noun in _counts(report) if number]
    size = report.world_size
    if report.kind == "attach":
        size = sum(len(attempt.ranks) for attempt in report.attempts)
    about = [count(size, "rank")] if size else []
    noun = "job" if report.kind == "attach" else "attempt"
    about += [count(len(report.attempts), noun)] if len(report.attempts) > 1 else []
    about += [outcome(report)] if outcome(report) else []
    about += [f"{report.seconds:.1f} s"] if report.kind == "run" else []
    found = ", ".join(parts) or "nothing was found"
    return "; ".join(filter(None, (found, ", ".join(about))))


def _counts(report: RunReport) -> Iterator[tuple[int, str]]:
    found = Counter(finding.severity for finding in report.findings)
    yield found["error"], "error"
    yield found["warning"], "warning"
    yield found["info"], "note"


def launch(report: RunReport, attempt: Attempt) -> str:
    """An attempt as a heading: "4 ranks", "4 ranks in launch 1 of 2"; under `attach` its job."""
    told = count(len(attempt.ranks), "rank")
    if report.kind == "attach":
        return f"{told} of {one_line(attempt.name)}"
    if len(report.attempts) == 1:
        return told
    return f"{told} in launch {report.attempts.index(attempt) + 1} of {len(report.attempts)}"


def attempts_line(report: RunReport) -> str:
    """What came before the last attempt; "" if nothing did."""
    if report.kind == "attach":
        return ""
    earlier = [
        f"{one_line(attempt.name)} ({', '.join(sorted({line.fate for line in attempt.ranks}))})"
        for attempt in report.attempts[:-1]
    ]
    return f"earlier: {'; '.join(earlier)}" if earlier else ""


def fates(ranks_: tuple[RankLine, ...]) -> list[Row]:
    """The ranks of an attempt, neighbours of the same fate together."""
    found = []
    several = len({line.host for line in ranks_ if line.host}) > 1
    for (host, fate, place, doing), same in groupby(
        ranks_, key=lambda line: (line.host * several, line.fate, line.place, line.doing)
    ):
        who = [line.rank for line in same]
        found.append(
            Row(
                who=f"{ranks(who)}{on([host] if host else [])}",
                place=one_line(str(place)) if place else "",
                function=one_line(_short(place.function)) if place else "",
                doing=one_line(doing) if doing not in fate else "",
                waits=one_line(fate),
            )
        )
    return found
