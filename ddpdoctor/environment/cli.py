"""The command `env`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from ddpdoctor.complaints import Complaint, complaining_about
from ddpdoctor.options import Colour, ColourOption, OutputOption, ReportFormatOption, StrictOption
from ddpdoctor.report import output
from ddpdoctor.report.formats import ReportFormat


def env(
    format_: ReportFormatOption = ReportFormat.text,
    nproc: Annotated[
        int | None, typer.Option(min=1, help="Judge a launch of so many ranks on this machine.")
    ] = None,
    checkpoints: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the job will save; tried with small files."),
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Tell what differs between FILES, one per host.")
    ] = False,
    files: Annotated[
        list[Path] | None, typer.Argument(help="With --compare: what `env --format json` wrote.")
    ] = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="Print the commands that mend it, for your shell.")
    ] = False,
    strict: StrictOption = False,
    target: OutputOption = None,
    colour: ColourOption = Colour.auto,
) -> None:
    """Describe this machine, and what is wrong with it.

    Secrets in the environment are left out. Exit code: 0 healthy or harmless; 1 something will go
    wrong because of it, or differs between hosts; with --strict, 1 for info too, and 3 for what
    could not be checked.
    """
    if compare != bool(files):
        raise Complaint("--compare and the FILES of two or more hosts belong together")
    if files and len(files) < 2:
        raise Complaint("--compare needs the files of two hosts or more")
    if checkpoints and not checkpoints.is_dir():
        raise Complaint(f"{checkpoints} is no folder: --checkpoints names where the job will save")
    if target:
        output.check_writable(target)

    from ddpdoctor.environment import compare as comparing
    from ddpdoctor.environment import examine, remedy, telling

    if files:
        with complaining_about(comparing.Unreadable):
            hosts = comparing.read(files)
        report = telling.compared([h.name for h in hosts], comparing.differences(hosts))
        unknown = 0
    else:
        known = examine(nproc=nproc, checkpoints=checkpoints)
        report, unknown = telling.told(known), telling.not_checked(known)
    if fix:
        script = remedy.script(report.findings, remedy.shell_of(os.environ, remedy.parent()))
        if target:
            output.write_file(target, script)
        else:
            output.write(sys.stdout, script)
    else:
        output.deliver(report, format_.value, target, colour.value)
    fails = report.fails_on("info" if strict else "warning")
    raise typer.Exit(1 if fails else 3 if strict and unknown else 0)
