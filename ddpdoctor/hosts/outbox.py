"""What a doctor has to tell of its ranks: all that they write, or as much as there is room for.

On a few hosts all of it is told, in its order. On many the first doctor can take little of each:
then a rank's state goes first (it begins, joins, waits for a while, fails); the calls that led to a
wait go if they are asked for; a wait that is over at once is not told at all; and what ranks are
compared by goes as there is room for it, in its order, or is lost. That this is so is told with it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from math import inf

_AMPLE = 500.0
"""Bytes a second that a rank does not fill: all is told in its order."""
_LONG = 0.5
"""Seconds after which a wait is told where there is little room: most end sooner."""
_HEARTBEATS = frozenset({b"still", b"alive"})
"""Of these the latest line is told, and only with a sign of life: the answers say who waits."""
_STATE = frozenset(
    {
        *(b"anew", b"start", b"joining", b"group", b"dissolved", b"leaving", b"left", b"exiting"),
        *(b"exception", b"thrown", b"moved", b"way", b"step"),
    }
)
_WAITS = frozenset({b"stuck", b"working"})
_LAST = frozenset({b"exception", b"exiting"})
"""Before these it is told what the rank had called."""
_CALLS = 64
"""Lines of them that are kept of each rank; a line holds several calls."""
_MOST = 1 << 20
"""Bytes that may wait for room."""
_PACKED = 6
"""Lines become so many times smaller on their way, or more."""
_BURST = 20.0
"""Seconds for which room that was not used is kept."""
_LEAST = 1000.0
"""Bytes of it that are kept in any case: a message of less is hardly worth one."""


class Outbox:
    """The lines that are still to be told."""

    def __init__(self, room: float = inf) -> None:
        self.room = room
        """Bytes a second that may be sent for what ranks are compared by."""
        self.spares = room < _AMPLE
        """There is little room."""
        self.has_lost = False
        """There was never room for something."""
        self._first = deque[tuple[int, bytes]]()
        self._rest = deque[tuple[int, bytes]]()
        self._size = 0
        """Bytes of the rest."""
        self._heartbeats: dict[tuple[int, bytes], bytes] = {}
        self._waits: dict[int, tuple[float, bytes]] = {}
        """By rank: since when a wait is known that was not told yet."""
        self._waiting: set[int] = set()
        """Ranks of which a wait was told, and not its end."""
        self._calls: dict[int, deque[bytes]] = {}
        self._ranks = 1
        self._credit = 0.0
        self._credited: float | None = None
        """When that was reckoned."""

    @property
    def has_first(self) -> bool:
        """Something is to be told before all else."""
        return bool(self._first)

    @property
    def all_wait(self) -> bool:
        """All ranks were told to wait: it may be for ever."""
        return len(self._waiting) >= self._ranks

    @property
    def is_behind(self) -> bool:
        """Not all is told that ranks are compared by."""
        return bool(self._rest) or self.has_lost or not self._waiting.isdisjoint(self._calls)

    def allow(self, room: float, ranks: int) -> None:
        """So many bytes a second may be sent of so many ranks."""
        self.room, self.spares, self._ranks = room, room < _AMPLE * ranks, ranks

    def put(self, rank: int, line: bytes, now: float) -> None:
        """Take in what a rank has written."""
        kind = line[6 : line.find(b'"', 6)]  # after {"k":"
        if kind in _HEARTBEATS:
            self._heartbeats[rank, kind] = line
            return
        self._heartbeats.pop((rank, b"still"), None)  # it may have moved since
        if not self.spares and not self._rest:
            self._first.append((rank, line))
        elif kind in _WAITS:
            self._waits[rank] = now, line
        elif kind == b"moved" and self._has_moved(rank):
            return  # and nobody knows that it had waited
        elif kind == b"collective":
            self._calls.setdefault(rank, deque(maxlen=_CALLS)).append(line)
        elif kind in _STATE:
            if kind in _LAST:
                self.tell_calls(rank)
            self._first.append((rank, line))
        elif self._size + len(line) <= _MOST:
            self._rest.append((rank, line))
            self._size += len(line)
        else:
            self.has_lost = True

    def _has_moved(self, rank: int) -> bool:
        """Note it; whether that it waited was never told."""
        was_pending = self._waits.pop(rank, None) is not None
        was_told = rank in self._waiting
        self._waiting.discard(rank)
        return was_pending and not was_told

    def beat(self) -> None:
        """A sign of life is due: the latest heartbeats go with it."""
        self._first += ((rank, line) for (rank, _), line in self._heartbeats.items())
        self._heartbeats.clear()

    def tell_calls(self, rank: int) -> None:
        """What it called, and that it waits, is to be told now."""
        self._first += ((rank, line) for line in self._calls.pop(rank, ()))
        self._tell_wait(rank)

    def lasting_waits(self, now: float) -> None:
        """Those that last are to be told."""
        for rank in [r for r, (since, _) in self._waits.items() if now - since >= _LONG]:
            self._tell_wait(rank)

    def _tell_wait(self, rank: int) -> None:
        if (wait := self._waits.pop(rank, None)) is not None:
            self._first.append((rank, wait[1]))
            self._waiting.add(rank)

    def batch(self, most: int) -> Iterator[tuple[int, bytes]]:
        """What is to be told first, up to so many bytes."""
        size = 0
        while self._first and size < most:
            rank, line = self._first.popleft()
            size += len(line)
            yield rank, line

    def more(self, now: float) -> Iterator[tuple[int, bytes]]:
        """What there is room for besides."""
        if self.spares:
            # None to begin with: what thousands had saved up would come all at once.
            gained = (now - self._credited) * self.room if self._credited is not None else 0.0
            self._credit = min(self._credit + gained, max(_LEAST, _BURST * self.room))
        self._credited = now
        size = 0
        while self._rest and (not self.spares or size < self._credit * _PACKED):
            rank, line = self._rest.popleft()
            size += len(line)
            self._size -= len(line)
            yield rank, line

    def sent(self, size: int) -> None:
        """A message of so many bytes went for what there was room for."""
        self._credit -= size
