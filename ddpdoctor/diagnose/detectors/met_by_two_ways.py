"""DDP402 in silence: two calls met under one number, and each rank took the sum for its own.

A rank that leaves out one call of a round, and another one in the next, has made as many in the
end: nothing waits, nothing raises, and a loss was averaged with a score. Seen are ranks that came
to one number of a group by ways which both of them have gone, and of which one has met itself at
another number. The two sides of one condition are such ways as well: that ranks have parted is for
the source to say (`annotate`).
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.waiting import normal_op
from ddpdoctor.evidence import Collective, Place, named

_SUMS = ("all_reduce", "reduce")

Way = tuple[Place, ...]
Calls = dict[int, Collective]
"""One call, as each rank made it."""


@detector(precedence=397)
def detect(case: Case) -> Iterator[Finding]:
    """The first numbers of a group that were of two calls, by each two ways once."""
    if not case.ended_well or any(rank.joins for rank in case.evidence.ranks):
        return  # who has run out of data answers the others' calls as it leaves Join
    for numbers in _by_group(case).values():
        gone: dict[Way, set[int]] = {}
        for calls in numbers.values():
            for rank, call in calls.items():
                gone.setdefault(call.way, set()).add(rank)
        whole = [calls for _, calls in sorted(numbers.items()) if len(calls) > 1]
        alike = {next(iter(of)) for calls in whole if len(of := _ways(calls)) == 1}
        told: set[frozenset[Way]] = set()
        for calls in whole:
            ways = frozenset(_ways(calls))
            if len(ways) < 2 or ways in told or not ways & alike or not _are_sums(calls):
                continue
            if all(gone[way] >= {*calls} for way in ways):
                told.add(ways)
                yield _finding(calls)


def _by_group(case: Case) -> dict[tuple[str, tuple[int, ...]], dict[int, Calls]]:
    """By group, and number: the calls that Python has made."""
    found: dict[tuple[str, tuple[int, ...]], dict[int, Calls]] = {}
    for rank in case.evidence.ranks:
        for call in rank.collectives:
            group = rank.groups.get(call.group)
            if group is not None and call.peer is None and call.way:
                numbers = found.setdefault((group.name, tuple(group.ranks)), {})
                numbers.setdefault(call.seq, {})[rank.rank] = call
    return found


def _ways(calls: Calls) -> set[Way]:
    return {call.way for call in calls.values()}


def _are_sums(calls: Calls) -> bool:
    """Whether all are of one kind, and of as many numbers: what else meets is told by its sizes."""
    forms = {(normal_op(each.op), each.shapes, each.dtype) for each in calls.values()}
    return len(forms) == 1 and next(iter(forms))[0] in _SUMS


def _finding(calls: Calls) -> Finding:
    sides: dict[Way, list[int]] = {}
    for rank, call in sorted(calls.items()):
        sides.setdefault(call.way, []).append(rank)
    first = next(iter(calls.values()))
    ordered = sorted(sides.items(), key=lambda side: len(side[1]))
    told = "; ".join(f"{named(ranks)} from {_shown(way)}" for way, ranks in ordered)
    return Finding(
        code="DDP402",
        title="collective-order-mismatch",
        severity="info",
        certainty="evidence",
        is_suspicion=True,
        ranks=tuple(sorted(calls)),
        places=tuple(
            RankPlace(
                ranks=tuple(ranks), place=way[-1], doing=f"{first.op} #{first.seq}", stack=way
            )
            for way, ranks in ordered
        ),
        cause=f"different calls of the ranks met under number {first.seq} of their group: {told}.",
        cure=Cure(text="Make the same calls in the same order on every rank."),
    )


def _shown(way: Way) -> str:
    """The line that tells it from another; a helper's is the same in both."""
    return " < ".join(str(each) for each in way[-2:][::-1])
