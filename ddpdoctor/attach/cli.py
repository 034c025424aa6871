"""The command `ddpdoctor attach`."""

from __future__ import annotations

from typing import Annotated

import typer

from ddpdoctor.complaints import complaining_about
from ddpdoctor.options import (
    Colour,
    ColourOption,
    FailOn,
    FailOnOption,
    OutputOption,
    RedactOption,
    ReportFormat,
    ReportFormatOption,
)
from ddpdoctor.report import output


def attach(
    pids: Annotated[
        list[int] | None,
        typer.Argument(metavar="PID...", help="Ranks, or their launcher; default: all jobs here."),
    ] = None,
    format_: ReportFormatOption = ReportFormat.text,
    target: OutputOption = None,
    fail_on: FailOnOption = FailOn.warning,
    redact: RedactOption = False,
    colour: ColourOption = Colour.auto,
) -> None:
    """Say what a job that hangs is waiting for.

    For a job that was not started under the doctor. Looks twice at the stacks of all ranks on this
    machine, by py-spy, and neither stops nor signals them. It may need root.

    Exit code: 0 nothing found; 1 findings (--fail-on); 2 no rank runs here.
    """
    if target:
        output.check_writable(target)

    from ddpdoctor.annotate import annotate
    from ddpdoctor.attach.session import NothingFound
    from ddpdoctor.attach.session import attach as look
    from ddpdoctor.report.run import RunReport
    from ddpdoctor.report.run.delivery import deliver

    with complaining_about(NothingFound):
        seen = look(pids or ())
    report = RunReport.of(
        "attach",
        seen.attempts,
        annotate(list(seen.findings)),
        command=("ddpdoctor", "attach", *map(str, pids or ())),
        not_seen=seen.not_seen,
    )
    deliver(report, format_, target, colour, redact=redact)
    raise typer.Exit(report.fails_on(fail_on.value))
