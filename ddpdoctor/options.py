"""The options that several commands share, and what all that report do by them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ddpdoctor.complaints import Complaint
from ddpdoctor.report import output
from ddpdoctor.report.formats import ReportFormat
from ddpdoctor.report.gravity import FailOn

if TYPE_CHECKING:
    from ddpdoctor.report.model import Report


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
    typer.Option("--output", "-o", metavar="FILE", help="Write to this file."),
]
_FORMAT = "For people: text, markdown or html; the others for programs, editors and CI servers."
ReportFormatOption = Annotated[ReportFormat, typer.Option("--format", help=_FORMAT)]
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


@dataclass(frozen=True)
class Asked:
    """What every command that reports is asked: how to tell it, and what makes it fail."""

    format_: ReportFormatOption = ReportFormat.text
    target: OutputOption = None
    fail_on: FailOnOption = FailOn.warning
    strict: StrictOption = False
    colour: ColourOption = Colour.auto

    @property
    def threshold(self) -> FailOn:
        """What makes it fail."""
        return FailOn.unchecked if self.strict else self.fail_on

    def deliver(self, report: Report) -> None:
        """Tell it. Raises OutputError."""
        output.deliver(report, self.format_.value, self.target, self.colour.value)

    def leave(self, report: Report, *, unseen: bool) -> NoReturn:
        """Exit as the report's findings want it, and what could not be checked."""
        raise typer.Exit(self.threshold.exit_code(report.severities, unseen=unseen))


def reporting(
    fail_on: FailOn = FailOn.warning, envvar: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorates a command with the options of `Asked`, which it gets as its parameter `asked`.

    `fail_on` is their default, `envvar` may say the format. What is to be written to is tried
    before anything long is done.
    """
    named = Annotated[ReportFormat, typer.Option("--format", envvar=envvar, help=_FORMAT)]

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters
        shared = inspect.signature(Asked, eval_str=True).parameters
        both = own | shared
        both["fail_on"] = both["fail_on"].replace(default=fail_on)
        both["format_"] = both["format_"].replace(annotation=named)
        del both["asked"]

        @wraps(command)
        def perform(**given: Any) -> None:
            asked = Asked(**{name: given.pop(name) for name in shared})
            if asked.target:
                output.check_writable(asked.target)
            command(**given, asked=asked)

        parameters = [each.replace(kind=each.KEYWORD_ONLY) for each in both.values()]
        perform.__annotations__ = {each.name: each.annotation for each in parameters}
        setattr(perform, "__signature__", inspect.Signature(parameters))  # noqa: B010 - mypy knows of none
        return perform

    return with_options


def split(codes: Sequence[str] | None) -> list[str]:
    """The codes that were given to an option, one by one."""
    found = [code.strip() for entry in codes or () for code in entry.split(",") if code.strip()]
    if codes and not found:  # that of an empty variable, say: it is not meant to be all
        raise Complaint("a CODE is empty: name a code, a prefix (DDP2) or a title")
    return found
