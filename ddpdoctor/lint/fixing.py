"""Applying fixes: text edits that leave everything else as it is, and never break a file."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable
from pathlib import Path

from ddpdoctor.lint.engine import source as sources
from ddpdoctor.lint.engine.source import Unreadable
from ddpdoctor.lint.rule import Diagnostic, Edit, Fix

_LINE_END = re.compile(r"\r\n|\r|\n")


def apply(text: str, fixes: Iterable[Fix]) -> tuple[str, int]:
    """The text with all fixes that do not overlap; how many were applied.

    A fix that would leave text that does not parse is left out.
    """
    chosen: list[Fix] = []
    taken: list[tuple[tuple[int, int], tuple[int, int]]] = []
    for fix in fixes:
        spans = [(edit.start, edit.end) for edit in fix.edits]
        if not any(_overlap(span, other) for span in spans for other in taken):
            chosen.append(fix)
            taken += spans
    new = _edited(text, [edit for fix in chosen for edit in fix.edits])
    if _parses(new):
        return new, len(chosen)
    good: list[Fix] = []
    for fix in chosen:
        if _parses(_edited(text, [edit for each in (*good, fix) for edit in each.edits])):
            good.append(fix)
    return _edited(text, [edit for fix in good for edit in fix.edits]), len(good)


def _overlap(
    one: tuple[tuple[int, int], tuple[int, int]], other: tuple[tuple[int, int], tuple[int, int]]
) -> bool:
    return one[0] == other[0] or (one[0] < other[1] and other[0] < one[1])


def _edited(text: str, edits: list[Edit]) -> str:
    starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
    newline = "\r\n" if "\r\n" in text else "\n"
    for edit in sorted(edits, key=lambda each: each.start, reverse=True):
        begin, end = (starts[line - 1] + column for line, column in (edit.start, edit.end))
        text = text[:begin] + edit.text.replace("\n", newline) + text[end:]
    return text


def _parses(text: str) -> bool:
    try:
        sources.parse(text)
    except Unreadable:
        return False
    return True


def fixes_of(found: Iterable[Diagnostic], *, unsafe: bool) -> list[Fix]:
    """The fixes of these findings that may be applied."""
    return [each.fix for each in found if each.fix and (unsafe or each.fix.safe)]


def write(path: str, text: str) -> None:
    """Replace a file's content, in its own encoding, in one step. Raises OSError."""
    file = Path(path).resolve()
    new = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    data = text.encode(sources.encoding_of(file.read_bytes()))
    try:
        new.write_bytes(data)
        new.chmod(file.stat().st_mode)
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)


def diff(path: str, old: str, new: str) -> str:
    """A unified diff."""
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), path, path
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
