"""What many ranks say alike, but for some numbers: told in one word, and understood once.

On its way a wait or a heartbeat of several ranks is one line, as one of them wrote it, and what is
each rank's own of it: its times, its share of waiting and its steps. The calls that ranks wait in
have the times of one of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ddpdoctor.evidence.checking import changed, check
from ddpdoctor.evidence.event import KINDS
from ddpdoctor.evidence.events.heart import stand
from ddpdoctor.evidence.model import RankEvidence
from ddpdoctor.evidence.records import Place, Stuck

_OWN: Final = {"stuck": ("t", "since"), "still": ("t",), "alive": ("t", "waits", "steps")}
"""What is each rank's own, by the kind of event, in the order in which a rank writes it."""
_STARTS = {f'{{"k":"{kind}",'.encode(): kind for kind in _OWN}
_NUMBER = r"(-?[0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?)"
_FOUND = {
    kind: re.compile("".join(f'.*?"{name}":{_NUMBER}[,}}]' for name in names).encode())
    for kind, names in _OWN.items()
}
_NUMBERS = re.compile(f'("(?:t|since|begun|waits|steps)":){_NUMBER}'.encode())
_NAMED_SO = re.compile(rb'"issued":\{[^}]*"(?:t|since|begun|waits|steps)":')
"""A group of the user's has such a name: its count is no time."""
_WAY = re.compile(r'"way":([0-9]+)')
_RIGHT: Final = {
    kind: tuple(check(int if name == "steps" else float) for name in names)
    for kind, names in _OWN.items()
}
_KEPT = 1024
"""Words that are remembered."""


@dataclass(slots=True)
class Word:
    """What ranks say alike."""

    line: str
    """As one rank wrote it."""
    kind: str
    stuck: Stuck | None = None
    """The wait that it tells of, once it was understood, with the times of one rank."""
    ways: dict[int, tuple[Place, ...]] = field(default_factory=dict)
    """The ways that it speaks of by their number."""
    passes: Sequence[tuple[int, int, int]] = ()
    forwards: int | None = None


@dataclass(slots=True)
class Saying:
    """A word of one rank, and what is its own of it."""

    word: Word
    own: Sequence[float]

    def event(self) -> dict[str, Any]:
        """As the rank itself wrote it. Raises what is in DAMAGED."""
        said: dict[str, Any] = json.loads(self.word.line)
        return said | dict(zip(_OWN[said["k"]], self.own, strict=True))

    def is_understood(self, rank: RankEvidence) -> bool:
        """Whether it says of this rank what it said of another one."""
        word = self.word
        right = _RIGHT[word.kind]
        if len(self.own) != len(right):
            return False
        for is_right, number in zip(right, self.own, strict=True):
            if not is_right(number):
                return False
        if word.kind != "stuck":
            return True
        if word.stuck is None:
            return False
        return all(rank.ways.get(number) == way for number, way in word.ways.items())

    def understood(self, rank: RankEvidence, passes: Sequence[tuple[int, int, int]]) -> None:
        """Remember what it said of this rank, if it is a wait."""
        word = self.word
        if word.kind != "stuck":
            return
        word.stuck, word.forwards, word.passes = rank.stuck, rank.forwards, passes
        numbers = map(int, _WAY.findall(word.line))
        word.ways = {number: rank.ways[number] for number in numbers if number in rank.ways}

    def apply(self, rank: RankEvidence, shift: float) -> None:
        """Have it be so, on a clock that is ahead by so much."""
        word, seen = self.word, self.own[0] + shift
        rank.last_event = max(rank.last_event, seen)
        if word.stuck is None:
            own = dict(zip(_OWN[word.kind], self.own, strict=True))
            KINDS[word.kind].apply(rank, own, seen)
        else:
            stuck = changed(word.stuck, since=self.own[1] + shift, seen=seen)
            stand(rank, stuck, word.passes, word.forwards)


class Words:
    """Those that were heard: each is understood once."""

    def __init__(self) -> None:
        self._known: dict[bytes, Word] = {}

    def word(self, line: str) -> Word:
        """That of a line, whatever its numbers. Raises KeyError where ranks say no such thing."""
        written = line.encode()
        said = _without_numbers(written)
        if (word := self._known.get(said)) is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            word = self._known[said] = Word(line, _STARTS[_start(written)])
        return word


def unfolded(lines: Iterable[tuple[int, bytes]]) -> list[tuple[Any, str]]:
    """Lines with the rank that wrote each."""
    return [(rank, _text(line)) for rank, line in lines]


def folded(lines: Iterable[tuple[int, bytes]]) -> list[tuple[Any, str]]:
    """The same; where several say alike, with all of them and what is each one's own.

    What one rank says stays in its order.
    """
    found: list[tuple[Any, str]] = []
    at: dict[bytes, int] = {}
    last: dict[int, int] = {}
    for rank, line in lines:
        kind = _STARTS.get(_start(line))
        own = _FOUND[kind].match(line) if kind is not None else None
        if own is None or _NAMED_SO.search(line):
            last[rank] = len(found)
            found.append((rank, _text(line)))
            continue
        said = _without_numbers(line)
        if at.get(said, -1) < last.get(rank, 0):
            at[said] = len(found)
            found.append(([], _text(line)))
        last[rank] = at[said]
        found[at[said]][0].append((rank, *map(json.loads, own.groups())))
    return found


def _start(line: bytes) -> bytes:
    return line[: line.find(b",") + 1]


def _without_numbers(line: bytes) -> bytes:
    return _NUMBERS.sub(rb"\1", line)


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")
