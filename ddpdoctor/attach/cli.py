"""The command `ddpdoctor attach`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ddpdoctor.complaints import complaining_about
from ddpdoctor.report import output
from ddpdoctor.run.cli import Colour, FailOn, ReportFormat


def attach(
    pids: Annotated[
        list[int] | None,
        typer.Argument(metavar="PID...", help="Ranks, or their launcher; default: all jobs here."),
    ] = None,
    format_: Annotated[ReportFormat, typer.Option("--format")] = ReportFormat.text,
    target: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to this file, not to stdout."),
    ] = None,
    fail_on: Annotated[
        FailOn, typer.Option(help="Exit with 1 if there is a finding as grave as this.")
    ] = FailOn.warning,
    redact: Annotated[
        bool, typer.Option("--redact", help="Leave paths, source and arguments out.")
    ] = False,
    colour: Annotated[Colour, typer.Option("--color", help="When to colour text.")] = Colour.auto,
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
    from ddpdoctor.report.run import RunReport, render
    from ddpdoctor.report.run.redaction import redacted

    with complaining_about(NothingFound):
        seen = look(pids or ())
    report = RunReport.of(
        "attach",
        seen.attempts,
        annotate(list(seen.findings)),
        command=("ddpdoctor", "attach", *map(str, pids or ())),
        not_seen=seen.not_seen,
    )
    shown = redacted(report) if redact else report
    if target:
        page = output.Page(colour=colour is Colour.always)
        output.write_file(target, render(shown, format_.value, page))
    else:
        page = output.Page.of(sys.stdout, colour.value)
        output.write(sys.stdout, render(shown, format_.value, page))
    raise typer.Exit(report.fails_on(fail_on.value))
