"""What became of a job of the user's: what `run`, `diagnose` and `attach` report.

report = of_job("run", [Attempt.of("attempt-0", evidence)], findings, subject=...)
text = render(report, "text")
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from ddpdoctor.catalog import Finding, RankPlace
from ddpdoctor.evidence import Place, attempt_number, named, signal_name
from ddpdoctor.report.excerpts import excerpts
from ddpdoctor.report.gravity import gravest_first
from ddpdoctor.report.lives import Attempt
from ddpdoctor.report.model import Case, EndedBy, Group, Report
from ddpdoctor.report.words import COLUMNS, Row, count, on, one_line, row

_STACKS = 32
_NAMED = 3


def of_job(
    command: str,
    attempts: Sequence[Attempt],
    findings: Sequence[Finding],
    *,
    subject: Sequence[str],
    started: datetime | None = None,
    seconds: float = 0.0,
    status: int | None = None,
    ended_by: EndedBy | None = None,
    children: Iterable[int] = (),
    proven_after: float | None = None,
    not_seen: Sequence[str] = (),
    unread: Sequence[str] = (),
    run_dir: Path | None = None,
    are_jobs: bool = False,
) -> Report:
    """Read the source lines that the findings name. `status` is as Popen.returncode gives it.

    So are `children`: how processes ended that the job had started, be they ranks or none.
    """
    ordered = tuple(gravest_first(findings))
    made = Report(
        command=command,
        subject=tuple(subject),
        machine=_hosts(attempts[-1]) if attempts else "",
        versions=attempts[-1].versions if attempts else "",
        directory=_working_directory(),
        started=started or datetime.now(UTC),
        seconds=seconds,
        verdict="",
        findings=ordered,
        not_seen=tuple(not_seen),
        unread=tuple(unread),
        excerpts=excerpts(_worth_reading(ordered, attempts)),
        attempts=tuple(attempts),
        are_jobs=are_jobs,
        exit_code=status if status is not None and status >= 0 else None,
        signal=-status if status is not None and status < 0 else None,
        ended_by=ended_by,
        proven_after=proven_after,
        run_dir=str(run_dir) if run_dir else "",
    )
    return completed_by(made.model_copy(update={"failure": _failure(made, children)}))


def completed_by(report: Report) -> Report:
    """The report with all that follows from what it knows of the job: verdict, notes, rows."""
    notes = [_earlier(report), _not_read(report)]
    if report.run_dir:
        notes.append(f"what the ranks wrote: {one_line(report.run_dir)}")
    told = {
        "verdict": _verdict(report),
        "notes": tuple(filter(None, notes)),
        "groups": tuple(_group(report, attempt) for attempt in report.attempts),
    }
    return report.model_copy(update=told)


def _worth_reading(findings: Sequence[Finding], attempts: Sequence[Attempt]) -> Iterator[Place]:
    """The first place of each finding, then the others, then where the ranks stood and how."""
    yield from (finding.place for finding in findings if finding.place is not None)
    yield from (p.place for finding in findings for p in finding.places if p.place is not None)
    lines = attempts[-1].ranks if attempts else ()
    stacks = dict.fromkeys(line.stack or tuple(filter(None, [line.place])) for line in lines)
    yield from (place for stack in list(stacks)[:_STACKS] for place in reversed(stack))
    yield from (call.place for line in lines for call in line.calls if call.place is not None)


def _hosts(attempt: Attempt) -> str:
    """The hosts of its ranks, as in "on node01, node02"."""
    return on(sorted({line.host for line in attempt.ranks if line.host})).strip()


def _working_directory() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - Path.cwd() would do the same
    except OSError:  # somebody has removed it
        return ""


def _verdict(report: Report) -> str:
    """The counts, and how the job ended: "1 error, 2 warnings; 4 ranks, ended by the doctor"."""
    found = Counter(finding.severity for finding in report.findings)
    counts = (found["error"], "error"), (found["warning"], "warning"), (found["info"], "note")
    parts = [count(number, noun) for number, noun in counts if number]
    attempts = report.attempts
    size = attempts[-1].world_size if attempts else 0
    if report.are_jobs:
        size = sum(len(attempt.ranks) for attempt in attempts)
    about = [count(size, "rank")] if size else []
    if len(attempts) > 1:
        about.append(count(len(attempts), "job" if report.are_jobs else "attempt"))
    about += [_outcome(report)] if _outcome(report) else []
    about += [f"{report.seconds:.1f} s"] if report.seconds else []
    told = ", ".join(parts) or f"nothing {'else ' * bool(report.failure)}was found"
    return "; ".join(filter(None, (report.failure, told, ", ".join(about))))


def _failure(report: Report, children: Iterable[int]) -> str:
    """The sentence on a job that ended badly, and none of whose findings is an error."""
    if not report.status or report.ended_by == "doctor" or "error" in report.severities:
        return ""
    if report.ended_by == "signal":
        by = signal_name(report.signal) if report.signal else "a signal"
        return f"the job was ended by {by} from outside"
    fates: dict[str, list[int]] = {}
    for line in report.attempts[-1].ranks if report.attempts else ():
        if (line.exit_code or line.signal) and not line.was_ended:
            fates.setdefault(line.fate, []).append(line.rank)
    told = [f"{named(ranks)} {fate}" for fate, ranks in fates.items()]
    told = told or [
        f"{count(number, 'process')} that it had started {_ending(code)}"
        for code, number in sorted(Counter(filter(None, children)).items())
    ]
    return f"the job failed: {'; '.join(told) or f'it {_ending(report.status)}'}"


def _ending(status: int) -> str:
    """In words; as Popen.returncode gives it."""
    return f"ended by {signal_name(-status)}" if status < 0 else f"ended with exit code {status}"


def _outcome(report: Report) -> str:
    """How the job ended, in a few words."""
    if report.ended_by == "doctor":
        return "ended by the doctor"
    if report.ended_by == "signal":
        return "" if report.failure else "ended by a signal from outside"
    if report.signal is not None:
        return f"ended by {signal_name(report.signal)}"
    if report.exit_code is None:
        return ""
    return "ended well" if report.exit_code == 0 else f"exit code {report.exit_code}"


def _earlier(report: Report) -> str:
    """What became of all attempts but the one that is told of; "" if there is no other."""
    if report.are_jobs:
        return ""
    told = [
        f"launch {number} ({', '.join(sorted({line.fate for line in attempt.ranks}))})"
        for number, attempt in sorted({_number(report, a): a for a in report.attempts[:-1]}.items())
    ]
    return f"besides: {'; '.join(told)}" if told else ""


def _not_read(report: Report) -> str:
    """Which files there was no time to read; "" if there was time for all."""
    names = [one_line(Path(file).name) for file in report.unread]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    told = (
        f"what only the source shows of {', '.join(names[:_NAMED])}{more}: there was no time to "
        "read it; `ddpdoctor lint` does"
    )
    return told if names else ""


def _number(report: Report, attempt: Attempt) -> int:
    """Which launch it was. The one that is told of comes last, and others may have begun later."""
    in_time = sorted(report.attempts, key=lambda each: attempt_number(each.name) or 0)
    return in_time.index(attempt) + 1


def _group(report: Report, attempt: Attempt) -> Group:
    """The ranks of a launch, and a case for each rank of the last one."""
    is_last = attempt is report.attempts[-1]
    # A terminal has them where nothing else was found and it has not seen the job end, and where
    # each attempt is a job of its own.
    is_told = is_last and not report.seconds and not report.findings
    return Group(
        title=_launch(report, attempt),
        columns=(*COLUMNS[:-1], "fate"),
        rows=tuple(_fates(attempt)),
        is_detail=not (report.are_jobs or is_told),
        cases=tuple(_cases(report, attempt)) if is_last else (),
        seconds=report.seconds,
    )


def _launch(report: Report, attempt: Attempt) -> str:
    """An attempt as a heading: "4 ranks", "4 ranks in launch 1 of 2"; or with its job's name."""
    told = count(len(attempt.ranks), "rank")
    if report.are_jobs:
        return f"{told} of {one_line(attempt.name)}"
    if len(report.attempts) == 1:
        return told
    return f"{told} in launch {_number(report, attempt)} of {len(report.attempts)}"


def _fates(attempt: Attempt) -> Iterator[Row]:
    """The ranks of an attempt, neighbours of the same fate together."""
    several = len({line.host for line in attempt.ranks if line.host}) > 1
    for (host, fate, place, doing), same in groupby(
        attempt.ranks, key=lambda line: (line.host * several, line.fate, line.place, line.doing)
    ):
        at = RankPlace(ranks=(), place=place, doing=doing if doing not in fate else "")
        yield row([line.rank for line in same], [host] if host else [], at, fate)


def _cases(report: Report, attempt: Attempt) -> Iterator[Case]:
    name = f"ddpdoctor.{report.command}"
    by_rank: dict[int, list[Finding]] = {line.rank: [] for line in attempt.ranks}
    alone: list[Finding] = []
    for finding in report.findings:
        # One failure for one cause, whichever number of ranks share it.
        by_rank.get(min(finding.ranks, default=-1), alone).append(finding)
    for line in attempt.ranks:
        yield Case(
            name=f"rank {line.rank}",
            classname=name,
            findings=tuple(by_rank[line.rank]),
            out=f"{line.fate}; {line.steps} optimizer steps",
        )
    yield Case(name="job", classname=name, findings=tuple(alone), out=_verdict(report))
