"""The options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ddpdoctor.report.formats import ReportFormat
from ddpdoctor.report.gravity import FailOn


class Colour(StrEnum):
    """When to colour text."""

    auto = "auto"
    always = "always"
    never = "never"


class Backend(StrEnum):
    """The library that the ranks communicate with."""

    auto = "auto"
    gloo = "gloo"
    nccl = "nccl"


class Hosts(StrEnum):
    """Whether the doctors of a job on several hosts speak with each other."""

    auto = "auto"
    off = "off"


ColourOption = Annotated[Colour, typer.Option("--color", help="When to colour text.")]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write to this file, not to stdout."),
]
FORMAT_HELP = "For people: text, markdown or html; the others for programs, editors and CI servers."
ReportFormatOption = Annotated[ReportFormat, typer.Option("--format", help=FORMAT_HELP)]
FailOnOption = Annotated[
    FailOn,
    typer.Option(
        help="Exit with 1 for a finding as grave as this, or graver; unchecked: for any, and with "
        "3 for what could not be checked."
    ),
]
StrictOption = Annotated[bool, typer.Option("--strict", help="The same as --fail-on unchecked.")]
RedactOption = Annotated[
    bool, typer.Option("--redact", help="Leave paths, source and arguments out.")
]
BackendOption = Annotated[Backend, typer.Option(help="How the ranks communicate.")]
_CODES = "a code, prefix (DDP2) or title; repeat, or use commas."
SelectOption = Annotated[
    list[str] | None, typer.Option(metavar="CODE", help=f"Only these: {_CODES}")
]
IgnoreOption = Annotated[
    list[str] | None, typer.Option(metavar="CODE", help=f"All but these: {_CODES}")
]
ExtendSelectOption = Annotated[
    list[str] | None, typer.Option(metavar="CODE", help=f"These, too: {_CODES}")
]


def threshold(fail_on: FailOn, strict: bool) -> FailOn:
    """What makes the command fail, of both options."""
    return FailOn.unchecked if strict else fail_on


def split(codes: Sequence[str] | None) -> list[str]:
    """The codes that were given to an option, one by one."""
    return [code.strip() for entry in codes or () for code in entry.split(",") if code.strip()]
