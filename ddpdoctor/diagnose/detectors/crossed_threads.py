"""DDP402: two threads of a rank call collectives of one group, in another order on another rank.

Seen: calls that wait for each other under one number and do not fit together, for seconds, where
threads besides the main one communicate. Evidence, never proof: between a thread's being counted
and its call another thread may come, and the calls that are told are then not those that met.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, way
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.waiting import agree, normal_op
from ddpdoctor.evidence import Collective, Place, Stuck, named

_LONG = 5.0
"""Seconds of waiting; calls that fit, and take as long, take back what was told."""

Met = dict[int, tuple[Collective, Stuck]]
"""What met under one number, by rank."""
Sides = dict[tuple[str, Place | None], list[int]]
"""The ranks by what they called, and where."""


@detector(precedence=343)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, of the first number under which calls do not fit."""
    if case.proven or not any(
        rank.stuck is not None and rank.stuck.other_threads_communicate
        for rank in case.evidence.ranks
    ):
        return
    met: defaultdict[tuple[str, int], Met] = defaultdict(dict)
    for rank in case.evidence.ranks:
        if (stuck := rank.stuck) is not None and stuck.seen - stuck.since > _LONG:
            for call in stuck.waiting:
                if call.peer is None:
                    met[call.group, call.seq][rank.rank] = call, stuck
    for _, calls in sorted(met.items()):
        (first, _), *others = calls.values()
        if not all(agree(first, other) for other, _ in others):
            yield _finding(calls)
            return


def _finding(calls: Met) -> Finding:
    numbers, sides = tuple(calls), Sides()
    for rank, (call, stuck) in calls.items():
        sides.setdefault((normal_op(call.op), call.place or stuck.place), []).append(rank)
    told = "; ".join(f"{op} at {place} on {named(ranks)}" for (op, place), ranks in sides.items())
    (call, _), *_ = calls.values()
    return Finding(
        code="DDP402",
        title="threads-cross",
        severity="error",
        certainty="evidence",
        may_pass=True,
        ranks=numbers,
        places=tuple(
            RankPlace(
                ranks=tuple(ranks),
                place=place,
                doing=f"{op} #{call.seq}",
                stack=() if calls[ranks[0]][0].place else way(calls[ranks[0]][1]),
            )
            for (op, place), ranks in sides.items()
        ),
        cause=f"two threads of {named(numbers)} call collectives of one group, in an order of each "
        f"rank's own: the same number is {told}. They wait for each other.",
        cure=Cure(
            text="Give the thread a group of its own: group = dist.new_group(), made by the main "
            "thread on all ranks, and its calls group=group."
        ),
    )
