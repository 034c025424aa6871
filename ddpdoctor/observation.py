"""Follows the evidence of a launch while it runs: what `check` and every later watcher share."""

from __future__ import annotations

from pathlib import Path

from ddpdoctor.diagnose import Deadlock, prove_deadlock
from ddpdoctor.evidence import Evidence, Fate, RankReader


class Observation:
    """The evidence of `world_size` ranks that log into `run_dir`, brought up to date by `poll`."""

    def __init__(self, run_dir: Path, world_size: int) -> None:
        self._readers = [RankReader(run_dir, rank, world_size) for rank in range(world_size)]
        self.evidence = Evidence(world_size, [reader.evidence for reader in self._readers])

    def poll(self, fates: list[Fate]) -> Deadlock | None:
        """Take in what ranks wrote and how some of them ended; the deadlock, as soon as proven."""
        for fate in fates:
            self.evidence.ranks[fate.rank].fate = fate
        for reader in self._readers:
            reader.poll()
        return prove_deadlock(self.evidence)
