"""The command `ddpdoctor diagnose`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ddpdoctor.complaints import complaining_about
from ddpdoctor.report import output
from ddpdoctor.run.cli import Colour, FailOn, ReportFormat


def diagnose(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="A run directory, flight-recorder dumps or text logs (a folder, or one file); "
            "- is stdin.",
        ),
    ],
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
    """Say what went wrong in a job that is over.

    Reads what `ddpdoctor run` has left, dumps of PyTorch's flight recorder (nothing in them is
    executed), or the plain log of a run that failed.

    Exit code: 0 nothing found; 1 findings (--fail-on); 2 nothing at PATH could be read.
    """
    if target:
        output.check_writable(target)

    from ddpdoctor.annotate import annotate
    from ddpdoctor.postmortem.material import NothingToRead, read, read_stream
    from ddpdoctor.report.run import Attempt, RunReport, render
    from ddpdoctor.report.run.redaction import redacted

    with complaining_about(NothingToRead):
        material = read_stream(sys.stdin.buffer) if path == "-" else read(Path(path))
    report = RunReport.of(
        "diagnose",
        [Attempt.of(name, evidence) for name, evidence in material.attempts],
        annotate(material.judge()),
        command=("ddpdoctor", "diagnose", path),
        not_seen=material.not_seen,
    )
    shown = redacted(report) if redact else report
    if target:
        page = output.Page(colour=colour is Colour.always)
        output.write_file(target, render(shown, format_.value, page))
    else:
        page = output.Page.of(sys.stdout, colour.value)
        output.write(sys.stdout, render(shown, format_.value, page))
    raise typer.Exit(report.fails_on(fail_on.value))
