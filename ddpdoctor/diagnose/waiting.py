"""Who waits for whom, and whether that can ever end.

A deadlock is proven, not timed out. A rank that waits in a collective is waiting for every member
of the group to arrive there. It waits for ever if some member can never arrive: it is gone, or it
waits for ever itself, at something else. The greatest set of ranks that fulfils this is the
deadlock. Waiting is stable: if all of the set were seen waiting at one instant, none of them will
ever move. (The wait-for graph of MPI's tools: MUST, Hilbrich et al. 2012.)
"""

from __future__ import annotations

from dataclasses import dataclass

from ddpdoctor.evidence import Collective, Evidence, RankEvidence, Stuck

GONE_GRACE = 0.5
"""Seconds that peers get to notice that a rank has left before they count as waiting for it."""

_SAME_OP = {
    "allreduce": "all_reduce",
    "all_reduce_barrier": "barrier",
    "allgather": "all_gather",
    "_all_gather_base": "all_gather",
    "_allgather_base": "all_gather",
    "all_gather_into_tensor": "all_gather",
    "_reduce_scatter_base": "reduce_scatter",
    "reduce_scatter_tensor": "reduce_scatter",
}


@dataclass(frozen=True, slots=True)
class Blocked:
    """A rank that will wait for ever, and for whom."""

    rank: int
    collective: Collective
    """The oldest one that it waits for."""
    stuck: Stuck
    waits_for: tuple[int, ...]
    """The members that can never arrive."""


@dataclass(frozen=True, slots=True)
class Deadlock:
    """A set of ranks none of which will ever move again."""

    blocked: tuple[Blocked, ...]
    gone: tuple[int, ...]
    """Ranks that others wait for and that have ended."""
    since: float
    """When the last of them began to wait."""


def prove_deadlock(evidence: Evidence) -> Deadlock | None:
    """The deadlock that the evidence proves, or None. Waiting that may yet end is none."""
    ranks = {rank.rank: rank for rank in evidence.ranks}
    gone = {r for r, rank in ranks.items() if rank.fate is not None and not rank.fate.killed_by_us}
    waiting = {r: rank for r, rank in ranks.items() if r not in gone and _waits(rank)}

    while True:
        absent = _absent(waiting, ranks, gone)
        free = [
            r for r, rank in waiting.items() if not all(absent[_key(c)] for c in _waits_in(rank))
        ]
        if not free:
            break
        for r in free:
            del waiting[r]
    if not waiting:
        return None

    missing = tuple(sorted(gone & {member for members in absent.values() for member in members}))
    seen_together = min(_stuck(rank).seen for rank in waiting.values())
    since = max(_stuck(rank).since for rank in waiting.values())
    ended = [fate.time + GONE_GRACE for r in missing if (fate := ranks[r].fate) is not None]
    if max([since, *ended]) > seen_together:
        return None
    blocked = tuple(
        Blocked(r, first, _stuck(rank), absent[_key(first)])
        for r, rank in sorted(waiting.items())
        for first in _waits_in(rank)[:1]
    )
    return Deadlock(blocked, missing, since)


def normal_op(op: str) -> str:
    """One name for one operation, whichever layer of torch wrote it down."""
    return _SAME_OP.get(op, op)


def _stuck(rank: RankEvidence) -> Stuck:
    assert rank.stuck is not None
    return rank.stuck


def _waits(rank: RankEvidence) -> bool:
    """Whether this rank's main thread idles inside torch with a collective outstanding."""
    stuck = rank.stuck
    if stuck is None or not stuck.waiting or stuck.other_threads_communicate:
        return False
    innermost = stuck.stack[-1].file
    if "/torch/utils/data/" in innermost:
        return False
    return "/torch/" in innermost or innermost.endswith("/ddpdoctor/watch/collectives.py")


def _waits_in(rank: RankEvidence) -> tuple[Collective, ...]:
    return _stuck(rank).waiting


def _key(collective: Collective) -> tuple[str, int, str]:
    return collective.group, collective.seq, normal_op(collective.op)


def _absent(
    waiting: dict[int, RankEvidence], ranks: dict[int, RankEvidence], gone: set[int]
) -> dict[tuple[str, int, str], tuple[int, ...]]:
    """For each collective that somebody waits in: its members that can never come to it."""
    absent: dict[tuple[str, int, str], tuple[int, ...]] = {}
    for rank in waiting.values():
        for collective in _waits_in(rank):
            if _key(collective) not in absent:
                group = rank.groups.get(collective.group)
                absent[_key(collective)] = tuple(
                    member
                    for member in (group.ranks if group is not None else ranks)
                    if (member in gone or member in waiting)
                    and not _arrived(ranks[member], collective)
                )
    return absent


def _arrived(member: RankEvidence, collective: Collective) -> bool:
    """Whether a member that waits or is gone has issued this very collective."""
    group, seq = collective.group, collective.seq
    if member.fate is not None or member.stuck is None:
        return any(c.group == group and c.seq >= seq for c in member.collectives)
    for theirs in member.stuck.waiting:
        if (theirs.group, theirs.seq) == (group, seq):
            return normal_op(theirs.op) == normal_op(collective.op)
    return member.stuck.issued.get(group, 0) >= seq
