"""The options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Colour(StrEnum):
    """When to colour text."""

    auto = "auto"
    always = "always"
    never = "never"


class ReportFormat(StrEnum):
    """The formats of a report on a job."""

    text = "text"
    json = "json"
    junit = "junit"
    markdown = "markdown"
    sarif = "sarif"
    html = "html"
    perfetto = "perfetto"


class Hosts(StrEnum):
    """Whether the doctors of a job on several hosts speak with each other."""

    auto = "auto"
    off = "off"


class FailOn(StrEnum):
    """From which severity on a finding makes a command fail."""

    error = "error"
    warning = "warning"
    info = "info"
    never = "never"


ColourOption = Annotated[Colour, typer.Option("--color", help="When to colour text.")]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write to this file, not to stdout."),
]
ReportFormatOption = Annotated[ReportFormat, typer.Option("--format")]
FailOnOption = Annotated[
    FailOn, typer.Option(help="Exit with 1 if there is a finding as grave as this.")
]
RedactOption = Annotated[
    bool, typer.Option("--redact", help="Leave paths, source and arguments out.")
]
