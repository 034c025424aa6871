"""The command line of lint: `app.command()(lint)` registers it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ddpdoctor.options import (
    Asked,
    Colour,
    ExtendSelectOption,
    IgnoreOption,
    SelectOption,
    reporting,
    split,
)
from ddpdoctor.report.gravity import FailOn
from ddpdoctor.report.output import wants_colour


@reporting(FailOn.error, envvar="DDPDOCTOR_FORMAT")
def lint(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="PATH", help="Files and folders; - is stdin.")
    ] = None,
    select: SelectOption = None,
    ignore: IgnoreOption = None,
    extend_select: ExtendSelectOption = None,
    statistics: Annotated[
        bool, typer.Option("--statistics", help="Only count findings by rule.")
    ] = False,
    fix: Annotated[bool, typer.Option("--fix", help="Apply the safe fixes.")] = False,
    unsafe_fixes: Annotated[
        bool, typer.Option("--unsafe-fixes", help="With --fix or --diff: the others too.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show what --fix would change.")] = False,
    baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Old findings that are not shown.")
    ] = None,
    write_baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all findings as old ones.")
    ] = None,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit with 0 anyway.")] = False,
    stdin_filename: Annotated[
        str, typer.Option(metavar="FILE", help="The name that standard input goes by.")
    ] = "",
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="This pyproject.toml, not the nearest.")
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=0, metavar="N", help="Processes; 0: per core.")
    ] = 0,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Remember nothing.")] = False,
    *,
    asked: Asked,
) -> None:
    """Find DDP bugs in source, before they run.

    Imports neither torch nor the code it reads. `# noqa: DDP401` on a line silences a rule there,
    [tool.ddpdoctor] in pyproject.toml configures.

    What is certain is an error, what is likely a warning, what harms nothing in most code an info.

    Exit code: 0 nothing certain found; 1 findings (--fail-on); 2 a usage error, or nothing to read;
    3 a file that was named could not be checked.
    """
    from ddpdoctor.lint.command import LintOptions, run

    in_file = asked.target and asked.colour is Colour.auto
    colour = Colour.never if in_file else asked.colour
    options = LintOptions(
        paths=tuple(paths or ["."]),
        select=tuple(split(select)),
        ignore=tuple(split(ignore)),
        extend_select=tuple(split(extend_select)),
        format=asked.format_.value,
        output=asked.target,
        colour=wants_colour(colour.value, sys.stdout),
        statistics=statistics,
        fix=fix,
        unsafe_fixes=unsafe_fixes,
        diff=diff,
        baseline=baseline,
        write_baseline=write_baseline,
        fail_on=asked.threshold,
        exit_zero=exit_zero,
        stdin_filename=stdin_filename,
        config=config,
        jobs=jobs,
        cache=not no_cache,
    )
    raise typer.Exit(run(options))
