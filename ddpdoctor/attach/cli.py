"""The command `ddpdoctor attach`."""

from __future__ import annotations

from typing import Annotated

import typer

from ddpdoctor.complaints import Complaint, complaining_about
from ddpdoctor.options import Asked, RedactOption, reporting


@reporting()
def attach(
    pids: Annotated[
        list[int] | None,
        typer.Argument(metavar="PID", help="Ranks, or their launcher; default: all jobs here."),
    ] = None,
    hosts: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Look at all these hosts: node01,gpu[07-09]."),
    ] = None,
    over: Annotated[
        str,
        typer.Option(
            metavar="COMMAND",
            help="How a host is reached; under Slurm: 'srun --jobid=JOB --overlap --ntasks=1 "
            "--nodes=1 --nodelist={host}'.",
        ),
    ] = "ssh -o BatchMode=yes {host}",
    tell: Annotated[bool, typer.Option("--tell", hidden=True)] = False,
    redact: RedactOption = False,
    *,
    asked: Asked,
) -> None:
    """Say what a job that hangs is waiting for.

    For a job that was not started under the doctor. Looks twice at the stacks of all ranks on this
    machine, by py-spy, and neither stops nor signals them. It may need root. With --hosts it looks
    on several, where ddpdoctor must be installed in the same place, and gives one verdict.

    Exit code: 0 nothing found; 1 findings (--fail-on); 2 no rank runs here.
    """
    if hosts is not None and pids:
        raise Complaint("processes are of one host: give --hosts or PID...")

    from ddpdoctor.annotate import annotate
    from ddpdoctor.attach.hosts import attach_on, told
    from ddpdoctor.attach.session import NothingFound, look
    from ddpdoctor.attach.session import attach as attach_here
    from ddpdoctor.report.job import of_job
    from ddpdoctor.report.redaction import redacted

    if tell:
        typer.echo(told(look(pids or ())))
        raise typer.Exit(0)
    with complaining_about(NothingFound):
        seen = attach_on(hosts, over) if hosts is not None else attach_here(pids or ())
    report = of_job(
        "attach",
        seen.attempts,
        annotate(list(seen.findings)),
        subject=("ddpdoctor", "attach", *map(str, pids or ())),
        not_seen=seen.not_seen,
        are_jobs=True,
    )
    asked.deliver(redacted(report) if redact else report)
    asked.leave(report, unseen=bool(report.not_seen))
