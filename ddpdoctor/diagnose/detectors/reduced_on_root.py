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
from ddpdoctor.evidence import Collective, Place, RankEvidence, named
from ddpdoctor.evidence.events.reads import Read

_ENOUGH = 2
_ROUNDING = 2e-5

Calls = dict[int, Collective]
"""One reduction, by rank."""


@detector(precedence=463)
def detect(case: Case) -> Iterator[Finding]:
    """One finding for each line that reduces."""
    ranks = [rank for rank in case.evidence.ranks if rank.groups]
    if len(ranks) < 2 or not any(rank.of(Read) for rank in ranks):
        return
    for calls in _by_way(ranks):
        seen = [_next_reads(rank, calls) for rank in ranks]
        root = calls[0][ranks[0].rank].root
        at_root = next((i for i, rank in enumerate(ranks) if rank.rank == root), None)
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


def _by_way(ranks: list[RankEvidence]) -> Iterator[list[Calls]]:
    """The reductions of few numbers to one rank that all have made from one line, by one way."""
    found: dict[tuple[Place, ...], dict[tuple[str, int], Calls]] = {}
    for rank in ranks:
        for call in rank.collectives:
            group = rank.groups.get(call.group)
            is_whole = group is not None and len(group.ranks) == len(ranks)
            if call.op != "reduce" or not is_whole or not call.values or call.place is None:
                continue
            if call.reduce_op in ("SUM", "AVG"):
                of_way = found.setdefault((*call.way, call.place), {})
                of_way.setdefault((call.group, call.seq), {})[rank.rank] = call
    for of in found.values():
        whole = [calls for calls in of.values() if len(calls) == len(ranks)]
        if len(whole) >= _ENOUGH and len({c.root for calls in whole for c in calls.values()}) == 1:
            yield whole


def _next_reads(rank: RankEvidence, calls: list[Calls]) -> dict[Place, dict[int, float]]:
    """By line: the number that a rank read there first after each of these calls."""
    own = calls[0][rank.rank]
    line = own.place, own.way
    begun = sorted(call.begun for call in rank.collectives if (call.place, call.way) == line)
    found: defaultdict[Place, dict[int, float]] = defaultdict(dict)
    for number, of in enumerate(calls):
        since = of[rank.rank].begun
        until = next((each for each in begun if each > since), math.inf)
        for read in rank.of(Read):
            if read.place and since < read.time < until and not read.aside:
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
