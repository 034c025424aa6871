"""The command `ddpdoctor diagnose`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ddpdoctor.complaints import Complaint, complaining_about
from ddpdoctor.options import Asked, RedactOption, reporting


@reporting()
def diagnose(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="A run directory, or those of all hosts of one job; flight-recorder dumps or text "
            "logs (a folder, or one file); - is stdin.",
        ),
    ],
    redact: RedactOption = False,
    *,
    asked: Asked,
) -> None:
    """Say what went wrong in a job that is over.

    Reads what `ddpdoctor run` has left, dumps of PyTorch's flight recorder (nothing in them is
    executed), or the plain log of a run that failed.

    Exit code: 0 nothing found; 1 findings (--fail-on); 2 nothing at PATH could be read.
    """
    if "" in paths:
        raise Complaint("a PATH is empty")

    from ddpdoctor.annotate import annotate
    from ddpdoctor.diagnose.hosts import located
    from ddpdoctor.postmortem.material import NothingToRead
    from ddpdoctor.postmortem.reading import read, read_stream
    from ddpdoctor.report.job import of_job
    from ddpdoctor.report.lives import Attempt
    from ddpdoctor.report.redaction import redacted

    with complaining_about(NothingToRead):
        is_stream = paths == ["-"]
        material = read_stream(sys.stdin.buffer) if is_stream else read(*map(Path, paths))
    report = of_job(
        "diagnose",
        [Attempt.of(name, evidence) for name, evidence in material.attempts],
        located(annotate(material.judge()), material.attempts[-1][1]),
        subject=("ddpdoctor", "diagnose", *paths),
        status=material.run.status if material.run else None,
        ended_by=material.run.ended_by if material.run else None,
        not_seen=(*material.not_seen, *dict.fromkeys(material.faults)),
    )
    if not report.findings and not any(attempt.ranks for attempt in report.attempts):
        raise Complaint(f"in {' '.join(paths)} {'; '.join(report.not_seen)}")
    asked.deliver(redacted(report) if redact else report)
    asked.leave(report, unseen=bool(report.not_seen))
