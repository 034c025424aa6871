"""Averages that a script makes of numbers that it reads one by one, as ranks sum them up.

Nothing is kept until a first small sum has been made. Then each line that reads has a total of what
it has read, and how that grew lately; with the next sums it is asked whether what goes in is the
total, or the average, of what one line has read: since a sum before, or last.
"""

from __future__ import annotations

from collections import deque
from types import FrameType

from ddpdoctor.watch.harmless import harmless

_KEPT = 128
"""Numbers of each line by which a stretch of them may begin or end."""
_LINES, _MARKS, _NUMBERS = 8, 2, 4
_MOST = 20_000
"""After so many numbers with no sum of an average among them, nothing more is kept."""
_ROUNDING = 1e-6
"""What the totals lose where they are made of single precision."""

Point = tuple[int, float]
"""How many numbers a line has read, and their total."""

Average = tuple[float, int]
"""An average, and of how many numbers: 0 where that is not known, or where it is a total's."""


class Averages:
    """What lines have read since the first sum."""

    def __init__(self) -> None:
        self.kept: dict[tuple[int, int], deque[Point]] | None = None
        """By code and instruction; None as long as nothing is kept."""
        self._marks: dict[tuple[int, int], deque[Point]] = {}
        self._left = _MOST

    @harmless
    def add(self, frame: FrameType, value: float) -> None:
        """One number more, while there is a `kept`."""
        kept = self.kept
        if kept is None or value - value != 0:
            return
        self._left -= 1
        if self._left < 0:
            self.kept = None
            return
        line = id(frame.f_code), frame.f_lasti
        points = kept.get(line)
        if points is None:
            if len(kept) < _LINES:
                kept[line] = deque([(0, 0.0), (1, value)], maxlen=_KEPT)
            return
        count, total = points[-1]
        points.append((count + 1, total + value))

    @harmless
    def of(self, values: list[float]) -> list[Average] | None:
        """By each number the average that it is, or is the total to, of two or more; else 0."""
        if self.kept is None:
            self.kept = {} if self._left > 0 else None
            return None
        stretches = [each for line in self.kept for each in self._stretches(line)]
        found = [_average(value, stretches) for value in values[:_NUMBERS]]
        for line, points in self.kept.items():
            self._marks.setdefault(line, deque(maxlen=_MARKS)).append(points[-1])
        if not any(average for average, _ in found):
            return None
        self._left = _MOST
        return found

    def _stretches(self, line: tuple[int, int]) -> list[Point]:
        """What a line has read since a sum before, until then or now; and last."""
        points = (self.kept or {})[line]
        last = points[-1]
        pairs = [(begun, last) for begun in points]
        for mark in (*self._marks.get(line, ()), (0, 0.0)):
            pairs += [(mark, end) for end in points]
        return [(end[0] - begun[0], end[1] - begun[1]) for begun, end in pairs]


def _average(value: float, stretches: list[Point]) -> Average:
    """That of the numbers of which this is the average or the total; 0 if there are none."""
    limit = _ROUNDING * abs(value)
    found, counts = 0.0, set[int]()
    for count, total in stretches:
        is_total = abs(total - value) <= limit
        if count > 1 and total and (is_total or abs(total - value * count) <= limit * count):
            found = found or total / count
            counts.add(0 if is_total else count)
    return found, counts.pop() if len(counts) == 1 else 0
