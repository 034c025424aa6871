"""Follows the evidence of a launch while it runs: what `check` and every later watcher share."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from ddpdoctor.diagnose import Deadlock, prove_deadlock
from ddpdoctor.evidence import Evidence, Fate, RankReader

SETTLING = 0.5
"""Seconds that a proven deadlock is held back for ranks that are not part of it."""


class Observation:
    """The evidence of `world_size` ranks that log into `run_dir`, brought up to date by `poll`."""

    def __init__(self, run_dir: Path, world_size: int) -> None:
        self._readers = [RankReader(run_dir, rank, world_size) for rank in range(world_size)]
        self.told: set[int] = set()
        """Ranks of other hosts."""
        self._first_proven: float | None = None
        self._proof: Deadlock | None = None
        self._news = False
        self.evidence = Evidence(world_size, [reader.evidence for reader in self._readers])

    def tell(self, rank: int, lines: Iterable[bytes], ahead: float) -> None:
        """Take in what a rank of another host wrote, whose clock is behind by so much.

        Raises IndexError where this cannot be.
        """
        reader = self._readers[rank]
        if rank < 0 or (rank not in self.told and reader.evidence.pid):
            raise IndexError(f"rank {rank} is none of another host's")
        self.told.add(rank)
        reader.take_from(lines, ahead)
        self._news = True

    def ahead(self, rank: int) -> float:
        """Seconds that were added to this rank's times, to have them on this host's clock."""
        return self._readers[rank].shift or 0.0

    def forget(self, rank: int) -> None:
        """What was told of this rank will be told again."""
        self._readers[rank].evidence.forget()

    def poll(self, fates: list[Fate]) -> Deadlock | None:
        """Take in what ranks wrote and how some of them ended; the deadlock, as soon as proven."""
        news, self._news = self._news, False
        for fate in fates:
            news |= self.evidence.ranks[fate.rank].fate != fate
            self.evidence.ranks[fate.rank].fate = fate
        for reader in self._readers:
            if reader.evidence.rank not in self.told:
                news |= reader.poll()
        if news:
            self.evidence.damaged = any(reader.unreadable for reader in self._readers)
            boots = {rank.boot for rank in self.evidence.ranks if rank.pid}
            self.evidence.one_time = not self.told and len(boots) < 2
            self._proof = prove_deadlock(self.evidence)
        return self.settled(self._proof)

    def close(self) -> None:
        """Keep no log open."""
        for reader in self._readers:
            reader.close()

    def settled(self, deadlock: Deadlock | None) -> Deadlock | None:
        """Hold a proof back for a moment while ranks that it leaves out may still join it.

        The dead stay dead; but the last ranks to block are often seen a beat later, and a report
        that lacks them would blame the wrong side.
        """
        if deadlock is None:
            return None
        now = time.monotonic()
        self._first_proven = self._first_proven or now
        alive = sum(rank.fate is None for rank in self.evidence.ranks)
        complete = len(deadlock.blocked) == alive
        return deadlock if complete or now - self._first_proven > SETTLING else None
