"""Follows the evidence of a launch while it runs: what `check` and every later watcher share."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from ddpdoctor.diagnose import Deadlock, prove_deadlock
from ddpdoctor.evidence import Evidence, Fate, RankEvidence, RankReader, Saying, log_of

SETTLING = 0.5
"""Seconds that a proven deadlock is held back for ranks that are not part of it."""
SETTLING_ELSEWHERE = 1.5
"""The same where ranks of other hosts are asked for, by a round or two more."""


class Observation:
    """The evidence of `world_size` ranks, brought up to date by `poll`.

    Those of this host log into `run_dir`; of the others it is told.
    """

    def __init__(self, run_dir: Path, world_size: int) -> None:
        self._run_dir = run_dir
        self._here: dict[int, RankReader] = {}
        """Of the ranks that log here: a few, of as many as 100 000."""
        self._told: dict[int, RankReader] = {}
        """Of those of other hosts."""
        self._first_proven: float | None = None
        self._proof: Deadlock | None = None
        self._news = False
        ranks = [RankEvidence(rank, world_size) for rank in range(world_size)]
        self.evidence = Evidence(world_size, ranks)

    @property
    def here(self) -> list[RankEvidence]:
        """The ranks that log here, and are none of another host's."""
        return [self.evidence.ranks[rank] for rank in sorted(self._here)]

    def tell(self, rank: int, line: bytes | Saying, ahead: float) -> None:
        """Take in what a rank of another host wrote, whose clock is behind by so much.

        Raises IndexError where this cannot be.
        """
        if rank < 0 or (rank not in self._told and self.evidence.ranks[rank].pid):
            raise IndexError(f"rank {rank} is none of another host's")
        reader = self._told.get(rank) or self._reader(rank, self._told)
        self._here.pop(rank, None)
        reader.take_from(line, ahead)
        self._note(reader)

    def ahead(self, rank: int) -> float:
        """Seconds that were added to this rank's times, to have them on this host's clock."""
        reader = self._told.get(rank)
        return (reader.shift or 0.0) if reader is not None else 0.0

    def forget(self, rank: int) -> None:
        """What was told of this rank will be told again."""
        self.evidence.ranks[rank].forget()

    def poll(self, fates: list[Fate]) -> Deadlock | None:
        """Take in what ranks wrote and how some of them ended; the deadlock, as soon as proven."""
        self._look_for_logs()
        for reader in self._here.values():
            if reader.poll():
                self._note(reader)
        for fate in fates:
            self._news |= self.evidence.ranks[fate.rank].fate != fate
            self.evidence.ranks[fate.rank].fate = fate
        if self._news:
            self._news = False
            boots = {rank.boot for rank in self.here if rank.pid}
            self.evidence.one_time = not self._told and len(boots) < 2
            self._proof = prove_deadlock(self.evidence)
        return self.settled(self._proof)

    def close(self) -> None:
        """Keep no log open."""
        for reader in self._here.values():
            reader.close()

    def _look_for_logs(self) -> None:
        if len(self._here) + len(self._told) == self.evidence.world_size:
            return
        with contextlib.suppress(OSError):
            for name in os.listdir(self._run_dir):  # noqa: PTH208 - names alone
                rank = log_of(name)
                if rank is None or rank >= self.evidence.world_size:
                    continue
                if rank not in self._here and rank not in self._told:
                    self._reader(rank, self._here)

    def _reader(self, rank: int, where: dict[int, RankReader]) -> RankReader:
        reader = RankReader(self._run_dir, rank, self.evidence.world_size)
        reader.evidence = self.evidence.ranks[rank]
        where[rank] = reader
        return reader

    def _note(self, reader: RankReader) -> None:
        self._news = True
        self.evidence.damaged |= bool(reader.unreadable)

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
        patience = SETTLING_ELSEWHERE if self._told else SETTLING
        return deadlock if complete or now - self._first_proven > patience else None
