"""The commands as the command line knows them: for the manual page, and for the site."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ddpdoctor import __version__


@dataclass(frozen=True)
class Option:
    """An option of a command."""

    flags: str
    """As they are typed: "-o, --output FILE"."""
    help: str


@dataclass(frozen=True)
class Command:
    """A command."""

    name: str
    usage: str
    help: str
    options: tuple[Option, ...]


def commands() -> list[Command]:
    """All commands, in the order of the help."""
    import typer

    from ddpdoctor.cli import application

    group: Any = typer.main.get_command(application())
    with group.make_context("ddpdoctor", [], resilient_parsing=True) as context:
        return [
            _described(group.get_command(context, name), name, context)
            for name in group.list_commands(context)
            if not group.get_command(context, name).hidden
        ]


def _described(command: Any, name: str, parent: Any) -> Command:
    context = command.context_class(command, info_name=name, parent=parent)
    pieces = " ".join(command.collect_usage_pieces(context))
    return Command(
        name=name,
        usage=f"ddpdoctor {name} {pieces}".strip(),
        help=_unwrapped(command.help or ""),
        options=tuple(_options(command, context)),
    )


def _unwrapped(text: str) -> str:
    """Each paragraph on one line."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _options(command: Any, context: Any) -> Iterator[Option]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and parameter.param_type_name == "option":
            yield Option(record[0], " ".join(record[1].split()))


def as_roff() -> str:
    """The manual page, of section 1."""
    lines = [
        f'.TH DDPDOCTOR 1 "" "ddpdoctor {__version__}"',
        ".SH NAME",
        r"ddpdoctor \- find out why DistributedDataParallel training hangs, crashes or goes wrong",
        ".SH SYNOPSIS",
        r".B ddpdoctor",
        r"\fICOMMAND\fR [\fIOPTIONS\fR] ...",
        ".SH COMMANDS",
    ]
    for command in commands():
        lines += [".SS", _roff(command.usage)]
        for paragraph in command.help.split("\n\n"):
            lines += [".PP", _roff(paragraph)]
        for option in command.options:
            lines += [".TP", rf"\fB{_roff(option.flags)}\fR", _roff(option.help)]
    return "\n".join(lines) + "\n"


def _roff(text: str) -> str:
    """Text that means nothing to roff."""
    told = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{told}" if told.startswith((".", "'")) else told
