"""For a person at a terminal: the line, a caret, why, and what to do, in 100 columns."""

from __future__ import annotations

import textwrap

from ddpdoctor.lint.report import Report, location
from ddpdoctor.lint.rule import Diagnostic

_WIDTH = 100
_BOLD, _RED, _YELLOW, _BLUE, _END = "\033[1m", "\033[31m", "\033[33m", "\033[34m", "\033[0m"


def render(report: Report, colour: bool) -> str:
    """All findings, then what could not be looked at, then one line of summary."""
    parts = [_finding(each, colour) for each in report.diagnostics]
    parts.append(f"{report.summary()}\n")
    return "\n".join(parts)


def _finding(each: Diagnostic, colour: bool) -> str:
    heavy = _RED if each.confidence == "certain" else _YELLOW
    code = f"{_BOLD}{heavy}{each.code}{_END}" if colour else each.code
    lines = [f"{location(each)}: {code} {each.name} ({each.confidence})"]
    lines += _wrapped(each.message, "  ", "  ")
    lines += [f"  {line}" for line in _excerpt(each, colour, heavy)]
    for note in each.notes:
        lines += _wrapped(note, "   = ", "     ")
    if each.help:
        lines += _wrapped(each.help, "   = help: ", "           ")
    return "\n".join(lines) + "\n"


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )


def _excerpt(each: Diagnostic, colour: bool, heavy: str) -> list[str]:
    number = str(each.line)
    room = _WIDTH - len(number) - 6
    line, start, end = _window(each, room)
    if not line.strip():
        return []
    margin = " " * len(number)
    caret = " " * start + "^" * max(1, end - start)
    if colour:
        caret = f"{heavy}{caret}{_END}"
        number = f"{_BLUE}{number}{_END}"
    return [f"{number} | {line}", f"{margin} | {caret}"]


def _window(each: Diagnostic, room: int) -> tuple[str, int, int]:
    """The part of the line around the finding, tabs as single blanks, and where it lies in it."""
    line = "".join(c if c.isprintable() else " " for c in each.excerpt)
    start = min(each.column - 1, len(line))
    one_line = each.end_line == each.line and each.end_column > each.column
    end = min(each.end_column - 1 if one_line else len(line.rstrip()), len(line))
    if len(line) > room:
        shift = max(0, start - room // 3)
        cut = line[shift : shift + room - 8]
        head = "... " if shift else ""
        tail = " ..." if shift + room - 8 < len(line) else ""
        line, start, end = head + cut + tail, start - shift + len(head), end - shift + len(head)
        end = min(end, len(head) + len(cut))
    else:
        blank = len(line) - len(line.lstrip())
        line, start, end = line[blank:], start - blank, end - blank
    return line.rstrip(), max(start, 0), max(end, 0)
