"""Where output goes: colour or not, which characters, and files that are whole or not there."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TextIO

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ddpdoctor.report.model import Report

MAX_WIDTH = 100
"""Columns of a page; wider lines are hard to read, and a narrow terminal gets narrower ones."""
_ROOM = 1 << 16
"""Bytes that a report may take."""

ColourChoice = Literal["auto", "always", "never"]

# One column each, so that what was laid out in Unicode stays laid out.
_ASCII = str.maketrans("✓✗✖▲●○→—–·…×‘’“”", "+xx!*o>---~x''\"\"")


class OutputError(Exception):
    """A file cannot be written; the message says why in one line."""


def wants_colour(choice: ColourChoice, stream: TextIO) -> bool:
    """Whether to colour what goes to `stream`: NO_COLOR, then FORCE_COLOR, then the terminal."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


@dataclass(frozen=True)
class Page:
    """What text for people is laid out for."""

    width: int = MAX_WIDTH
    colour: bool = False

    @classmethod
    def of(cls, stream: TextIO, choice: ColourChoice) -> Page:
        """As wide as the terminal, or as COLUMNS says, and never wider than a page."""
        width = MAX_WIDTH
        if stream.isatty() or "COLUMNS" in os.environ:
            width = shutil.get_terminal_size(fallback=(MAX_WIDTH, 24)).columns
        return cls(min(width, MAX_WIDTH), wants_colour(choice, stream))

    def lay_out(self, *parts: RenderableType) -> str:
        """What rich makes of the parts, in ANSI's sixteen colours: the user's theme decides."""
        from rich.console import Console

        text = io.StringIO()
        console = Console(
            file=text,
            width=self.width,
            force_terminal=self.colour,
            color_system="standard" if self.colour else None,
            highlight=False,
            emoji=False,
            markup=False,
        )
        for part in parts:
            console.print(part)
        return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


def deliver(report: Report, format_: str, target: Path | None, choice: ColourChoice) -> None:
    """Render a report, and write it to a file or to stdout.

    Raises OutputError. What no file takes is told on stdout: it may have taken minutes to find.
    """
    from ddpdoctor.report.model import render

    page = Page(colour=choice == "always") if target else Page.of(sys.stdout, choice)
    try:
        put(render(report, format_, page), target)
    except OutputError:
        if target:
            write(sys.stdout, render(report, "text", Page.of(sys.stdout, choice)))
        raise


def put(text: str, target: Path | None) -> None:
    """Write text to a file or to stdout. Raises OutputError."""
    if target:
        write_file(target, text)
    else:
        write(sys.stdout, text)


def open_closed_streams() -> None:
    """Let the standard streams that were closed when we began lead nowhere.

    Else a file of ours takes their number, and what is meant for stderr goes there, or to stdout.
    What we start gets them closed, as without us.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)  # the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115


def write(stream: TextIO, text: str) -> None:
    """Write `text`, in ASCII where the stream's encoding has not all of its characters.

    Raises OutputError; a broken pipe stays a BrokenPipeError, which is nobody's fault.
    """
    encoding = stream.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        silence(stream)
        raise OutputError(f"cannot write to {stream.name}: {error.strerror}") from error


def silence(stream: TextIO) -> None:
    """Let what is still buffered for a stream that takes no more go nowhere, at exit too."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def check_writable(path: Path) -> None:
    """Find out that `path` cannot be written before anything long is run.

    Raises OutputError. Leaves nothing behind, and an existing file as it is.
    """
    if _is_special(path):
        return
    if path.is_dir():
        raise OutputError(f"cannot write {path}: it is a folder, name a file in it")
    _try_to_write(_draft(path), path)


def make_folder(path: Path) -> None:
    """Make a folder that can be written into. Raises OutputError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "there is a file" if isinstance(error, FileExistsError) else error.strerror
        raise OutputError(f"cannot make the folder {path}: {why}") from error
    _try_to_write(_draft(path / "probe"), path)


def _try_to_write(draft: Path, path: Path) -> None:
    # By trying: permissions do not tell, for root, nor for a file system mounted read-only or full.
    try:
        draft.write_bytes(bytes(_ROOM))
    except OSError as error:
        missing = None if draft.parent.exists() else f"there is no folder {path.parent}"
        raise OutputError(f"cannot write {path}: {missing or error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def write_file(path: Path, text: str) -> None:
    """Write a whole file or none: a draft beside it takes its place at the end.

    Raises OutputError.
    """
    draft = path if _is_special(path) else _draft(path)
    try:
        draft.write_text(text, encoding="utf-8")
        if draft is not path:
            draft.replace(path.resolve())
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from error
    finally:
        if draft is not path:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)


def _is_special(path: Path) -> bool:
    """A device or a pipe, which is written to and must not be replaced."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _draft(path: Path) -> Path:
    target = path.resolve()  # a link stays a link: its target is what is replaced
    return target.with_name(f".{target.name}.{os.getpid()}.tmp")
