"""DDP421: running totals are summed in place, and what was summed is summed again the next time.

The numbers show it: at several calls of one line that followed each other, and to which the same
lines had led (one line may sum all meters in turn, two of them by one way), each rank gave more
than the sum over all ranks of the call before, and less of no element. So it went on from that sum,
which is on all ranks now, and the next one counts it once for every rank. Numbers that grow as fast
by themselves would look the same, so it is evidence.

Or at calls of one line, whatever led to it, of which each was given the very tensor that the one
before had reduced in place; between them others may begin anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Collective, Place, RankEvidence

_SEVERAL = 2
"""Of a few sums of many numbers, so many must have grown: gradients are mostly none."""
_ENOUGH = 2
"""Calls that went on from the one before."""
_LOOKED_AT, _IN_TURN = 4, 6
"""Calls of each way that are taken for one total's, or for those of two totals in turn."""


@detector(precedence=429)
def detect(case: Case) -> Iterator[Finding]:
    """One finding for each line."""
    ranks = [rank for rank in case.evidence.ranks if rank.groups]
    if len(ranks) < 2:
        return
    numbers = tuple(rank.rank for rank in ranks)
    lines = [_by_line(rank) for rank in ranks]
    told: set[Place] = set()
    for way, mine in lines[0].items():
        place = way[0]
        if place in told:
            continue
        calls = list(zip(*(of.get(way, []) for of in lines), strict=False))
        every = list(zip(*(_at(of, place) for of in lines), strict=False))
        if not _goes_on(calls) and not _is_given_again(every):
            continue
        told.add(place)
        yield Finding(
            code="DDP421",
            title="reduced-twice",
            severity="warning",
            certainty="evidence",
            ranks=numbers,
            places=(
                RankPlace(ranks=numbers, place=place, doing=f"{mine[0].op}(SUM) of its own sum"),
                *callers(numbers, mine[0].way, place),
            ),
            cause=f"{mine[0].op} at {place} sums totals in place, and the ranks go on from the "
            f"sum: what was summed is summed again, {len(ranks)} times as much at each call.",
            cure=Cure(text="Reduce a copy (totals.clone()), or begin anew after each reduction."),
        )


def _by_line(rank: RankEvidence) -> dict[tuple[Place, ...], list[Collective]]:
    """The first calls of each line whose numbers were written down, by the lines that led to it."""
    found: dict[tuple[Place, ...], list[Collective]] = {}
    for call in rank.collectives:
        whole = call.group in rank.groups and len(rank.groups[call.group].ranks) == rank.world_size
        if call.place is not None and _numbers(call) and call.reduce_op == "SUM" and whole:
            found.setdefault((call.place, *call.way), []).append(call)
    return {way: of[:_IN_TURN] for way, of in found.items()}


def _at(by_way: dict[tuple[Place, ...], list[Collective]], place: Place) -> list[Collective]:
    """The calls of a line, in their order."""
    calls = (call for way, of in by_way.items() if way[0] == place for call in of)
    return sorted(calls, key=lambda call: call.seq)


def _numbers(call: Collective) -> tuple[float, ...]:
    return call.values or call.some


def _goes_on(calls: list[tuple[Collective, ...]]) -> bool:
    """Whether each of these calls went on from the sum of the one before.

    One line may sum two totals in turn, as those of two metrics in a loop: then some number is less
    than that of the call before, which no number of one total is; or each goes on twice from its
    own sum, which totals that only grow evenly do not.
    """
    first = calls[:_LOOKED_AT]
    mine = [_numbers(call[0]) for call in first]
    turns = 2 if any(a > b for of in pairwise(mine) for a, b in zip(*of, strict=False)) else 1
    is_one = len(first) - turns >= _ENOUGH and _go_on(first, turns)
    return is_one or (len(calls) - 2 >= 2 * _ENOUGH and _go_on(calls, 2))


def _go_on(calls: list[tuple[Collective, ...]], turns: int) -> bool:
    """Whether each went on from the sum of the one so many calls before."""
    in_turn = (calls[first::turns] for first in range(turns))
    return all(map(_is_one_call, calls)) and all(map(_went_on, in_turn))


def _is_given_again(calls: list[tuple[Collective, ...]]) -> bool:
    """Whether, wherever one is given what the one before has reduced, it goes on from the sum."""
    again = [of for of in pairwise(calls) if any(call.again for call in of[1])]
    return len(again) >= _ENOUGH and all(
        all(call.again for call in of[1]) and all(map(_is_one_call, of)) and _went_on([*of])
        for of in again
    )


def _is_one_call(call: tuple[Collective, ...]) -> bool:
    """Whether it is the same call of all ranks, of as many numbers."""
    return len({each.seq for each in call}) == len({len(_numbers(each)) for each in call}) == 1


def _went_on(calls: list[tuple[Collective, ...]]) -> bool:
    sums = [[math.fsum(n) for n in zip(*map(_numbers, call), strict=True)] for call in calls]
    return all(
        sum(total > 0 for total in before) >= (_SEVERAL if calls[number][0].some else 1)
        and all(total >= 0 for total in before)
        and all(
            len(_numbers(call)) == len(before)
            and all(own >= total for own, total in zip(_numbers(call), before, strict=True))
            and any(own > total for own, total in zip(_numbers(call), before, strict=True))
            for call in calls[number + 1]
        )
        for number, before in enumerate(sums[:-1])
    )
