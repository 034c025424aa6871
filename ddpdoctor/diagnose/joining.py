"""Who has come to the process group, who has not, and whether they still can.

To join is a collective too, at a store: a rank waits there until as many have come as the world
size says. It waits for ever if all that will ever start has started, and stands elsewhere, has
ended, or is too few; or if nobody hosts the store that it asks for.
"""

from __future__ import annotations

from dataclasses import dataclass

from ddpdoctor.diagnose.waiting import Blocked, Deadlock
from ddpdoctor.evidence import Collective, Evidence, RankEvidence

STORE = "(store)"
"""The group of those that join, where it is told like any other."""


@dataclass(frozen=True, slots=True)
class Gathering:
    """Ranks that wait in init_process_group."""

    tried: tuple[RankEvidence, ...]
    """They wait, or have waited until they gave up."""
    ended: tuple[RankEvidence, ...]
    """Processes that are over, and never came."""
    late: tuple[RankEvidence, ...]
    """Processes that are known, and on their way."""
    unseen: tuple[int, ...]
    """Ranks of which nothing was ever seen."""
    world_size: int
    launched: int
    """The world size by the launcher's word: it started so many, on whatever host."""
    since: float
    now: float
    """The latest that is known of any of them."""

    @property
    def started(self) -> int:
        """How many processes the launcher has started in all; 0 where it does not say."""
        return max((rank.started for rank in self.tried), default=0)

    @property
    def all_have_started(self) -> bool:
        """Whether no other process will ever come."""
        seen = len(self.tried) + len(self.ended) + len(self.late)
        return bool(self.started) and seen >= self.started

    @property
    def all_wait(self) -> bool:
        """Whether all that are wanted have come, to one place, and stand still there."""
        (party, *others) = self.parties
        still = all(r.stuck and r.stuck.since >= (r.joining or 0.0) for r in party)
        absent = self.ended or self.late or self.unseen
        return still and not others and not absent and len(party) >= party[0].wanted > 1

    @property
    def parties(self) -> list[tuple[RankEvidence, ...]]:
        """Those that meet at one place, of one world size, together; the largest first."""
        together: dict[tuple[str, int], list[RankEvidence]] = {}
        for rank in self.tried:
            together.setdefault((_key(rank), rank.wanted), []).append(rank)
        return sorted(map(tuple, together.values()), key=lambda party: (-len(party), party[0].rank))


def gathering(evidence: Evidence) -> Gathering | None:
    """The ranks that have come, if some wait for others."""
    ranks = evidence.ranks
    if any(rank.groups for rank in ranks):
        return None
    tried = tuple(rank for rank in ranks if rank.joining is not None)
    if not tried:
        return None
    others = [rank for rank in ranks if rank.pid and rank.joining is None]
    ended = tuple(rank for rank in others if rank.fate is not None or rank.exiting is not None)
    return Gathering(
        tried=tried,
        ended=ended,
        late=tuple(rank for rank in others if rank not in ended),
        unseen=tuple(rank.rank for rank in ranks if not rank.pid),
        world_size=max([evidence.world_size, *(rank.wanted for rank in tried)]),
        launched=evidence.world_size,
        since=min(rank.joining or 0.0 for rank in tried),
        now=max(
            [*(r.last_event for r in ranks), *(r.fate.time for r in ranks if r.fate is not None)]
        ),
    )


def stranded(evidence: Evidence) -> Deadlock | None:
    """The ranks that wait at a store where too few will ever come."""
    found = gathering(evidence)
    if found is None or found.late or not found.all_have_started:
        return None
    if any(rank.fate is not None for rank in found.tried):
        return None
    if any(len(rank.joined_by) > 1 and not rank.unhosted for rank in found.tried):
        return None  # two call themselves by one number: who waits is not known
    if any(rank.fate is None or rank.fate.exit_code != 0 for rank in found.ended):
        return None
    blocked = []
    for party in found.parties:
        wanted = party[0].wanted
        unhosted = all(rank.unhosted for rank in party)
        if not party[0].meeting or (len(party) >= wanted and not unhosted):
            return None
        here = {rank.rank for rank in party}
        absent = tuple(r for r in range(wanted) if r not in here) or tuple(sorted(here))
        for rank in party:
            if rank.stuck is None or rank.stuck.waiting or rank.stuck.since < (rank.joining or 0.0):
                return None
            call = Collective(STORE, 1, "init_process_group", rank.joining or 0.0)
            blocked.append(Blocked(rank.rank, call, rank.stuck, absent))
    since = max(each.stuck.since for each in blocked)
    gone = tuple(rank.rank for rank in found.ended)
    return Deadlock(tuple(sorted(blocked, key=lambda each: each.rank)), gone, since)


def state(rank: RankEvidence) -> str:
    """What a process does that has not joined yet, in a word."""
    if rank.stuck is not None:
        return "asleep"
    return "computing" if rank.working is not None else "on its way"


def _key(rank: RankEvidence) -> str:
    """Where it meets the others: by its port, as one host has several names."""
    _, colon, port = rank.meeting.rpartition(":")
    return port if colon and port.isdigit() else rank.meeting
