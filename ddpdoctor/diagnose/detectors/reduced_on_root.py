"""DDP416: the result of a reduction to one rank is read on the others, too, which do not have it.

The numbers show it, at several calls of one line: what the root read next, at a line, was one of
the sums of what the ranks had put in, their average, or the quotient of two. The others read at the
same line, and had another number. What they do with it is not seen: that they go by it, only the
source tells (`annotate`). What is read to be printed is left out.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.reductions import Calls, by_way, reads_after
from ddpdoctor.evidence import Collective, Place, RankEvidence, named
from ddpdoctor.evidence.events.reads import Read

_ENOUGH = 2
_ROUNDING = 2e-5


@detector(precedence=463)
def detect(case: Case) -> Iterator[Finding]:
    """One finding for each line that reduces."""
    ranks = [rank for rank in case.evidence.ranks if rank.groups]
    if len(ranks) < 2 or not any(rank.of(Read) for rank in ranks):
        return
    for calls in by_way(ranks, _goes_to_one):
        roots = {call.root for of in calls for call in of.values()}
        if len(calls) < _ENOUGH or len(roots) > 1:
            continue
        seen = [_next_reads(rank, calls) for rank in ranks]
        at_root = next((i for i, rank in enumerate(ranks) if rank.rank in roots), None)
        if at_root is None:
            continue
        for place, reads in seen[at_root].items():
            right = {n: each for n, each in reads.items() if _comes_of(each, calls[n], len(ranks))}
            if len(right) < _ENOUGH or len(set(right.values())) < _ENOUGH:
                continue
            wrong = {
                rank.rank: next(iter(others))
                for rank, of in zip(ranks, seen, strict=True)
                if (others := _others(right, of.get(place, {})))
            }
            if wrong:
                yield _finding(ranks, calls[0], place, wrong)
                return


def _goes_to_one(call: Collective) -> bool:
    return call.op == "reduce" and bool(call.values) and call.reduce_op in ("SUM", "AVG")


def _next_reads(rank: RankEvidence, calls: list[Calls]) -> dict[Place, dict[int, float]]:
    """By line: the number that a rank read there first after each of these calls."""
    found: defaultdict[Place, dict[int, float]] = defaultdict(dict)
    for number, read in reads_after(rank, calls):
        if read.place and not read.aside:
            found[read.place].setdefault(number, float.fromhex(read.value))
    return found


def _comes_of(read: float, calls: Calls, world: int) -> bool:
    """Whether it is a sum of what all have put in, their average, or the quotient of two sums."""
    columns = zip(*(call.values for call in calls.values()), strict=False)
    sums = [math.fsum(column) for column in columns]
    made = [each / by for each in sums for by in (1, world, *sums) if by and each != by]
    return bool(read) and any(_is(read, each) for each in made)


def _others(right: dict[int, float], reads: dict[int, float]) -> list[tuple[float, float]]:
    """What was read where the root read another number, with that."""
    return [
        (reads[number], each)
        for number, each in right.items()
        if number in reads and not _is(reads[number], each)
    ]


def _is(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_ROUNDING)


def _finding(
    ranks: list[RankEvidence],
    calls: Calls,
    place: Place,
    wrong: dict[int, tuple[float, float]],
) -> Finding:
    numbers = tuple(rank.rank for rank in ranks)
    call = calls[numbers[0]]
    rank, (read, right) = next(iter(wrong.items()))
    return Finding(
        code="DDP416",
        title="reduced-only-on-root",
        severity="info",
        certainty="evidence",
        is_suspicion=True,
        ranks=numbers,
        places=(
            RankPlace(ranks=numbers, place=call.place, doing=f"reduces to rank {call.root}"),
            RankPlace(ranks=tuple(wrong), place=place, doing="reads what came of it"),
            *callers(numbers, call.way, call.place),
        ),
        cause=f"what {named(tuple(wrong))} {'read' if len(wrong) > 1 else 'reads'} at {place} is "
        f"no result: the reduction at {call.place} gives that to rank {call.root} alone "
        f"({read:.4g} on rank {rank}, where rank {call.root} has {right:.4g}).",
        cure=Cure(text="all_reduce() instead of reduce(), or let that rank decide and broadcast."),
    )
