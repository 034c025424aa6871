"""The one line at the foot of a terminal that tells how a watched job is doing.

The line lies outside the region that scrolls, as apt's progress does: whatever the job prints, and
wherever it moves the cursor, the two never touch.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from typing import Self

from ddpdoctor.catalog import Finding
from ddpdoctor.diagnose.joining import Gathering, gathering, state
from ddpdoctor.evidence import named
from ddpdoctor.report.words import one_line
from ddpdoctor.run.worlds import WatchedWorld

_EVERY = 1.0
_FEWEST_ROWS = 5
_SPAN = 10
"""Looks over which the pace is averaged."""
_UNEVEN = 0.2
"""The slowest rank waits for the others by so much less of its time."""


class StatusLine:
    """Shows a world's ranks, steps and pace; nothing at all where stderr is no terminal."""

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._size: os.terminal_size | None = None
        self._next = 0.0
        self._past: deque[tuple[float, int]] = deque(maxlen=_SPAN)

    def look(self, world: WatchedWorld, stall: Finding | None = None) -> None:
        """Bring the line up to date, if it is time to."""
        if self._enabled and time.monotonic() > self._next:
            self._next = time.monotonic() + _EVERY
            self._show(one_line(stall.cause) if stall is not None else self._told(world))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Give the terminal back whole."""
        if self._size is not None:
            rows = self._size.lines
            self._write(f"\x1b7\x1b[0;{rows}r\x1b[{rows};0f\x1b[2K\x1b8")

    def _told(self, world: WatchedWorld) -> str:
        ranks = world.evidence.ranks
        if (found := gathering(world.evidence)) is not None:
            return _waits(found)
        parts = [f"{len(world.living)} of {len(ranks)} ranks"]
        if steps := min(rank.steps for rank in ranks):
            parts.append(f"step {steps}")
            self._past.append((time.monotonic(), steps))
            (then, before), (now, _) = self._past[0], self._past[-1]
            if steps > before:
                parts.append(f"{(steps - before) / (now - then):.1f} steps/s")
        waits = [rank.waits for rank in ranks]
        if max(waits) - min(waits) > _UNEVEN:
            parts.append(f"slowest rank {waits.index(min(waits))}")
        return " · ".join(parts)

    def _show(self, text: str) -> None:
        size = os.get_terminal_size(sys.stderr.fileno())
        if size.lines < _FEWEST_ROWS:
            return
        if size != self._size:
            self._size = size
            self._write(f"\n\x1b7\x1b[0;{size.lines - 1}r\x1b8\x1b[1A")
        line = f"ddpdoctor: {text}"[: size.columns - 1]
        self._write(f"\x1b7\x1b[{size.lines};0f\x1b[2K\x1b[2m{line}\x1b[0m\x1b8")

    def _write(self, sequence: str) -> None:
        try:
            os.write(sys.stderr.fileno(), sequence.encode())
        except OSError:
            self._enabled = False


def _waits(found: Gathering) -> str:
    """Who has joined, and where the others are: "1 of 2 ranks have joined (12 s); rank 1 ..."."""
    told = f"{len(found.tried)} of {found.world_size} ranks have joined"
    told += f" ({found.now - found.since:.0f} s)"
    for rank in found.late[:1]:
        seen = rank.stuck or rank.working
        at = f"at {seen.place}, " if seen is not None and seen.place is not None else ""
        more = f", and {len(found.late) - 1} more" if len(found.late) > 1 else ""
        return f"{told}; rank {rank.rank} is {at}{state(rank)}{more}"
    if found.unseen:
        return f"{told}; nothing was seen of {named(found.unseen)} yet"
    return told
