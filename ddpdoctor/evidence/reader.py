"""From the lines that a rank writes to what is known of it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from ddpdoctor.evidence.checking import check
from ddpdoctor.evidence.clock import Clock, shift
from ddpdoctor.evidence.event import KINDS
from ddpdoctor.evidence.likeness import Saying
from ddpdoctor.evidence.model import RankEvidence
from ddpdoctor.evidence.run_directory import CUT_SHORT, DAMAGED, LOG_NAME, boot, open_file
from ddpdoctor.evidence.spans import fits

_BLOCK = 1 << 20
_LARGEST = 1 << 26
"""Bytes of a log; a rank begins it anew long before."""
_SCALARS = {
    **{key: check(int) for key in ("pid", "world_size", "local_world_size", "number", "steps")},
    **{key: check(int) for key in ("started", "wanted", "agent", "parent")},
    **{key: check(float) for key in ("t", "waits", "since", "wall")},
    **{key: check(str) for key in ("k", "torch", "python", "boot", "host")},
    **{key: check(str | None) for key in ("name", "source", "meeting", "master", "run")},
    **{key: check(str | None) for key in ("launcher", "out_of")},
}
"""Of the fields of events, those that no record checks."""


class LogReader:
    """Reads a rank's log while it is being written."""

    def __init__(self, run_dir: Path, rank: int) -> None:
        self.cut_short = False
        """It could not be written to its end."""
        self._path = run_dir / LOG_NAME.format(rank=rank)
        self._log: BinaryIO | None = None
        self._rest = b""

    def poll(self) -> list[bytes]:
        """The lines that were written since the last call.

        A line that is not complete yet is left for the next call; one that a kill cut short, or a
        full disk, is never completed and so never read. A log that was begun anew is followed.
        """
        before = self._log
        if self._log is None or self._is_replaced(self._log):
            try:
                self._log = open_file(self._path)
            except OSError:
                self._log = None
        lines: list[bytes] = []
        if before is not None and before is not self._log:
            lines += self._read(before)
            before.close()
            self._rest = b""
        return lines + (self._read(self._log) if self._log is not None else [])

    def close(self) -> None:
        """Read no more."""
        if self._log is not None:
            self._log.close()

    def _is_replaced(self, log: BinaryIO) -> bool:
        try:
            now, then = self._path.stat(), os.fstat(log.fileno())
        except OSError:
            return False
        return (now.st_dev, now.st_ino) != (then.st_dev, then.st_ino)

    def _read(self, log: BinaryIO) -> list[bytes]:
        status = os.fstat(log.fileno())
        size = min(status.st_size, _LARGEST)
        found: list[bytes] = []
        while (room := size - log.tell()) > 0 and (new := log.read(min(room, _BLOCK))):
            *lines, self._rest = (self._rest + new).split(b"\n")
            found += lines
        self.cut_short = stat.S_IMODE(status.st_mode) == CUT_SHORT
        return found


class RankReader:
    """Takes in what a rank writes, and keeps the `RankEvidence` up to date.

    Its times are brought to `clock`, if one is given, else they are those of the rank's own host.
    """

    def __init__(
        self, run_dir: Path, rank: int, world_size: int, clock: Clock | None = None
    ) -> None:
        self.evidence = RankEvidence(rank, world_size)
        self.own_clock: Clock | None = None
        """That of its host, once it has begun."""
        self.shift: float | None = 0.0
        """What was added to its times; None if they could not be brought to `clock`."""
        self.unreadable = 0
        """Lines that are no events: somebody else wrote into the log, or a newer doctor."""
        self._world_size, self._clock = world_size, clock
        self._ahead: float | None = None
        self._log = LogReader(run_dir, rank)

    def poll(self) -> bool:
        """Take in what was written since the last call; whether there was anything."""
        lines = self._log.poll()
        self.take(lines)
        before, self.evidence.cut_short = self.evidence.cut_short, self._log.cut_short
        return bool(lines) or self.evidence.cut_short != before

    def take(self, lines: Iterable[bytes]) -> None:
        """Take in some lines, from wherever they come."""
        for line in lines:
            try:
                self._take(json.loads(line))
            except DAMAGED:
                self.unreadable += 1

    def take_from(self, line: bytes | Saying, ahead: float) -> None:
        """Take in a line of another host, whose clock is behind by so much."""
        self._ahead = ahead
        try:
            if isinstance(line, Saying):
                self._take_saying(line)
            else:
                self._take(json.loads(line))
        except DAMAGED:
            self.unreadable += 1

    def close(self) -> None:
        """Read no more."""
        self._log.close()

    def _take(self, event: dict[str, Any]) -> None:
        """One event, if it is of the right types. Raises whatever is in DAMAGED."""
        for key, is_right in _SCALARS.items():
            if key in event and not is_right(event[key]):
                raise TypeError(f"{key} cannot be {event[key]!r:.80}")
        rank, kind = self.evidence, event["k"]
        if kind == "start":
            self.own_clock = Clock.of(event)
            self.shift = self.own_clock.ahead_of(self._clock or self.own_clock)
            if self._ahead is not None and self.own_clock.boot != boot():
                self.shift = self._ahead
        if self.shift and kind != "anew":  # which happens at no time
            shift(event, self.shift)
        if (number := event.get("wrapper")) is not None and not 0 <= number < len(rank.wrappers):
            raise IndexError(f"there is no wrapper {number}")
        world = self._world_size or rank.world_size
        if kind == "group" and not fits(event["ranks"], world):
            raise IndexError("a group has members beyond the world")
        self._apply(event)

    def _take_saying(self, saying: Saying) -> None:
        if saying.is_understood(self.evidence):
            saying.apply(self.evidence, self.shift or 0.0)
            return
        event = saying.event()
        passes = event.get("passes", ())
        self._take(event)
        saying.understood(self.evidence, passes)

    def _apply(self, event: dict[str, Any]) -> None:
        kind, time = event.pop("k"), event.pop("t")
        self.evidence.last_event = max(self.evidence.last_event, time)
        if "way" in event:
            event["way"] = self.evidence.way(event["way"])
        if kind in KINDS:
            KINDS[kind].apply(self.evidence, event, time)
