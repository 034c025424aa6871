"""The command `env`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ddpdoctor.complaints import Complaint, complaining_about
from ddpdoctor.options import Asked, reporting
from ddpdoctor.report import output
from ddpdoctor.report.formats import ReportFormat


@reporting()
def env(
    nproc: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Judge a launch of so many ranks on this machine."),
    ] = None,
    checkpoints: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the job will save; tried with small files."),
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Tell what differs between FILES, one per host.")
    ] = False,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="With --compare: what `env --format json` wrote."),
    ] = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="Print the commands that mend it, for your shell.")
    ] = False,
    *,
    asked: Asked,
) -> None:
    """Describe this machine, and what is wrong with it.

    Secrets in the environment are left out.

    Exit code: 0 healthy or harmless; 1 something will go wrong because of it, or differs between
    hosts (--fail-on); 2 a usage error or a fault of ours.
    """
    if compare != bool(files):
        raise Complaint("--compare and a FILE of each host belong together")
    if files and len(files) < 2:
        raise Complaint("--compare needs the files of two hosts or more")
    if checkpoints and not checkpoints.is_dir():
        raise Complaint(f"{checkpoints} is no folder: --checkpoints names where the job will save")
    if fix and asked.format_ is not ReportFormat.text:
        raise Complaint("--fix prints commands, and no report: leave --format out")

    from ddpdoctor.environment import compare as comparing
    from ddpdoctor.environment import examine, remedy, telling
    from ddpdoctor.report.model import Unreadable

    if files:
        with complaining_about(Unreadable):
            hosts = comparing.read(files)
        report = telling.compared([h.name for h in hosts], comparing.differences(hosts))
        unknown = 0
    else:
        known = examine(nproc=nproc, checkpoints=checkpoints)
        report, unknown = telling.told(known), telling.not_checked(known)
    if fix:
        script = remedy.script(report.findings, remedy.shell_of(os.environ, remedy.parent()))
        output.put(script, asked.target)
    else:
        asked.deliver(report)
    asked.leave(report, unseen=unknown > 0)
