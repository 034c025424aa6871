"""A log as a stream of lines: who said each, without the marks that launchers put before it.

Nothing is kept of what has passed. Where a whole block holds none of the words that matter, and no
traceback is open, its lines are not even looked at: a log of a gigabyte is read in seconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

_BLOCK = 1 << 20
_LONGEST = 16_000
_WORDS = (
    b"rror",
    b"Traceback",
    b"Watchdog",
    b"xception",
    b"ignal",
    b"exitcode",
    b"clients joined",
    b"imed out",
    b"rank  ",
    b"-- Process ",
    b"unrecognized arguments",
    b"are required",
    b"shared memory",
    b"mismatch between",
)
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|[\x00-\x08\x0b-\x1f]")
_RANK = re.compile(r"\[rank(\d{1,6})\]:? ?")
_TORCHRUN = re.compile(r"\[(?:default|trainer|worker)(\d{1,6})\]:")
_MPIRUN = re.compile(r"\[\d+,(\d{1,6})\]<std(?:err|out)>:\s?")
_SRUN = re.compile(r"\s*(\d{1,6}): ?")
_TELLING = re.compile(r"\s*\d{1,6}: ?(?:\[rank\d+\]|Traceback \(most recent call last\)| +File \")")


@dataclass(frozen=True, slots=True)
class Line:
    """One line."""

    number: int
    text: str
    rank: int | None
    """Whose it is, if it says so."""
    in_group: bool
    """torch itself marked it: the rank had joined its process group."""


class Readable(Protocol):
    """What can be read in blocks."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes; none at the end."""


class Binary(Exception):
    """This is no text."""


def lines(stream: Readable, wanted: Callable[[], bool]) -> Iterator[Line]:
    """The lines that may matter; all of them while `wanted` says so. Raises Binary."""
    reading = _Marks()
    number, rest = 0, b""
    while block := stream.read(_BLOCK):
        if number == 0 and _is_binary(block):
            raise Binary
        block = rest + block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        whole, newline, rest = block.rpartition(b"\n")
        if not newline and len(rest) < 4 * _BLOCK:
            continue
        if not newline:
            whole, rest = rest, b""
        interesting = any(word in whole for word in _WORDS)
        if not interesting and not wanted():
            number += whole.count(b"\n") + 1
            continue
        for raw in whole.split(b"\n"):
            number += 1
            yield reading.read(number, raw)
    if rest:
        yield reading.read(number + 1, rest)


def _is_binary(block: bytes) -> bool:
    head = block[:8192]
    odd = sum(byte < 9 or 13 < byte < 27 for byte in head)
    return odd > len(head) // 20 or (len(head) > 64 and head.count(b"\0") > len(head) // 100)


class _Marks:
    """Takes the marks off; srun's are mere numbers, and believed only once they are certain."""

    def __init__(self) -> None:
        self._by_srun = False

    def read(self, number: int, raw: bytes) -> Line:
        text = _ANSI.sub("", raw[:_LONGEST].decode("utf-8", "replace")).rstrip()
        rank: int | None = None
        in_group = False
        self._by_srun = self._by_srun or _TELLING.match(text) is not None
        outer = (_MPIRUN, _TORCHRUN, _SRUN) if self._by_srun else (_MPIRUN, _TORCHRUN)
        for mark in outer:
            if match := mark.match(text):
                rank, text = int(match[1]), text[match.end() :]
        if match := _RANK.match(text):
            rank, in_group, text = int(match[1]), True, text[match.end() :]
        return Line(number, text, rank, in_group)
