"""Proves that ranks of several hosts waited at one instant, whatever their clocks say.

Each doctor tells the first one who waits, and since when. Where that may be a deadlock, the first
asks all others: who waits now, and since when? A doctor answers when it has seen its ranks after
the question came, and names those that it saw waiting. A round is over when all have answered, or
one has not for too long and so names nobody; only then the next is asked.

A rank that was told of before the question was asked, and is named in the answer with the same
beginning of its wait, has waited without a break from before it was told of until after the
question came. At the instant at which it was asked, which is one of the first doctor's own, all
these ranks waited at once. No two clocks were compared, and a message that is late, lost or doubled
can only leave ranks out. This is a consistent cut (Chandy and Lamport 1985, Mattern 1989), and
waiting is stable: what `diagnose.waiting` proves of it will always hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, fields, replace
from math import inf

from ddpdoctor.evidence import Evidence, RankEvidence

PAUSE = 0.5
"""Seconds between two rounds; and for which a rank must be gone: so long others get to notice."""
PATIENCE = 1.5
"""Seconds that an answer may take."""
_LOOKS = 3
"""How often it is looked for an answer at least, however long a look takes."""
_FIELDS = tuple(each.name for each in fields(RankEvidence))
_LOOK = 0.5
"""Seconds that a rank gets to be seen again; its heart beats several times in that."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Ranks that waited all at once."""

    time: float
    """An instant at which they did, on the clock of the first doctor."""
    since: Mapping[int, float]
    """When each had begun to, as it was told."""


class Rounds:
    """The questions of the first doctor, and what the answers prove."""

    def __init__(self) -> None:
        self.number = 0
        """Of the round that was asked last."""
        self.cut = Cut(-inf, {})
        """What the last round has shown."""
        self._asked = self._over = -inf
        self._is_open = False
        self._looks = 0
        """How often it was looked since the question."""
        self._told: Mapping[int, float] = {}
        """Who waited, and since when, by what was known as it was asked."""
        self._answers: dict[str, Mapping[int, float]] = {}

    def hear(self, host: str, number: int, waiting: Mapping[int, float]) -> None:
        """Take in an answer; one to an earlier round tells nothing any more."""
        if self._is_open and number == self.number:
            self._answers[host] = waiting

    def close(self, hosts: Set[str], now: float) -> None:
        """End the round if it is over: all of these have answered, or one has not for too long."""
        self._looks += 1
        is_late = now - self._asked > PATIENCE and self._looks > _LOOKS
        if self._is_open and (hosts <= self._answers.keys() or is_late):
            named = {rank: since for each in self._answers.values() for rank, since in each.items()}
            unmoved = {rank: s for rank, s in named.items() if self._told.get(rank) == s}
            self.cut = Cut(self._asked, unmoved)
            self._over, self._is_open = now, False

    def is_due(self, now: float) -> bool:
        """Whether it is time for the next question."""
        return not self._is_open and now - self._over >= PAUSE

    def ask(self, now: float, told: Mapping[int, float]) -> int:
        """The number of the next round, which begins; `told` says who waits, and since when."""
        self.number += 1
        self._asked, self._told, self._answers = now, told, {}
        self._is_open, self._looks = True, 0
        return self.number


def later(asked: tuple[int, float], number: int, now: float) -> tuple[int, float]:
    """The question to answer, and when it came: one that comes late, or again, changes nothing."""
    return (number, now) if number > asked[0] else asked


def answer(ranks: Iterable[RankEvidence], asked: float, now: float) -> dict[int, float] | None:
    """The ranks that were seen waiting after the question came; None while one may yet be seen."""
    waits = {rank.rank: rank.stuck for rank in ranks if rank.stuck and rank.fate is None}
    if now - asked < _LOOK and any(stuck.seen <= asked for stuck in waits.values()):
        return None
    return {rank: stuck.since for rank, stuck in waits.items() if stuck.seen > asked}


def seen_at_once(
    evidence: Evidence, since: Mapping[int, float], gone: Set[int], time: float
) -> Evidence:
    """The evidence of a cut: who waited from `time` on, and who had ended by then.

    `since` says when the wait had begun that the cut speaks of; a rank that has another by now has
    moved. What needs no change is not copied: it is to be asked before each use whether it `holds`.
    """
    ranks = []
    for rank in evidence.ranks:
        stuck, fate = rank.stuck, rank.fate
        waited = stuck is not None and since.get(rank.rank) == stuck.since
        if fate is None and (stuck is None or waited):
            ranks.append(rank)
            continue
        known = _copy(rank)
        known.stuck = stuck if waited else None
        known.fate = fate if rank.rank in gone else None
        ranks.append(known)
    return replace(evidence, ranks=ranks, one_time=True, cut=time)


def holds(known: Evidence, since: Mapping[int, float], gone: Set[int]) -> bool:
    """Whether the evidence of a cut still shows that cut: most ranks in it live on."""
    return all(
        (rank.fate is None or rank.rank in gone)
        and (rank.stuck is None or since.get(rank.rank) == rank.stuck.since)
        for rank in known.ranks
    )


def _copy(rank: RankEvidence) -> RankEvidence:
    """As copy.copy, which takes ten times as long: there may be 100 000."""
    made: RankEvidence = object.__new__(RankEvidence)
    for name in _FIELDS:
        setattr(made, name, getattr(rank, name))
    return made
