"""A log as a stream of lines: who said each, without the marks that launchers put before it.

Nothing is kept of what has passed. Lines without any of the words that matter are leapt over while
no traceback is open: logs of gigabytes are mostly progress.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

_BLOCK = 1 << 20
_LONGEST = 16_000
_WORDS = (
    b"Traceback",
    b"Watchdog",
    b"last enqueued",
    b"FAILED",
    b"Root Cause",
    b"exitcode",
    b"-- Process ",
    b"EADDRINUSE",
    b"ddress already in use",
    b"clients joined",
    b"client socket",
    b"No route to host",
    b"--local",
    b"ProcessExited",
    b"shared memory",
    b"out of memory",
    b"Error: ",
)
"""One of these stands in the first line of whatever is recognised."""
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|[\x00-\x08\x0b-\x1f]")
_RANK = re.compile(r".{0,120}?\[rank(\d{1,6})\]: ?")
"""Whatever a service has put before it."""
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT[\d:.,]+(?:Z|[+-]\d\d:?\d\d)? (?:std(?:err|out) [FP] )?")
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
    marks = _Marks()
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
        for n, raw in _chosen(whole, wanted):
            yield marks.read(number + n, raw)
        number += whole.count(b"\n") + 1
    if rest:
        yield marks.read(number + 1, rest)


def _chosen(block: bytes, wanted: Callable[[], bool]) -> Iterator[tuple[int, bytes]]:
    """Lines with their number in the block, from 1; what does not matter is leapt over."""
    hits = sorted(_hits(block))
    at = position = 0
    number = 1
    while position <= len(block):
        if not wanted():
            while at < len(hits) and hits[at] < position:
                at += 1
            if at == len(hits):
                return
            start = block.rfind(b"\n", position, hits[at]) + 1
            if start > position:
                number += block.count(b"\n", position, start)
                position = start
        end = block.find(b"\n", position)
        end = len(block) if end < 0 else end
        yield number, block[position:end]
        position, number = end + 1, number + 1


def _hits(block: bytes) -> Iterator[int]:
    """Where the words that matter stand; one a line is enough of each."""
    for word in _WORDS:
        at = block.find(word)
        while at >= 0:
            yield at
            end = block.find(b"\n", at)
            at = block.find(word, end) if end >= 0 else -1


def _is_binary(block: bytes) -> bool:
    """By control characters that no terminal is sent, a few of which are in any log."""
    head = block[:8192]
    odd = sum(byte < 7 or 13 < byte < 27 for byte in head)
    return odd > 8 + len(head) // 20


class _Marks:
    """Takes the marks off; srun's are mere numbers, and believed only once they are certain."""

    def __init__(self) -> None:
        self._by_srun = False

    def read(self, number: int, raw: bytes) -> Line:
        text = _ANSI.sub("", raw[:_LONGEST].decode("utf-8", "replace")).rstrip()
        text = _STAMP.sub("", text, count=1) if _STAMP.match(text) else text
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
