"""Reductions of few numbers: what the ranks put in, and what they read of it before the next."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from ddpdoctor.evidence import Collective, Place, RankEvidence
from ddpdoctor.evidence.events.reads import Read

Calls = dict[int, Collective]
"""One reduction, by rank."""


def by_way(ranks: list[RankEvidence], wanted: Callable[[Collective], bool]) -> list[list[Calls]]:
    """Those that all ranks have made from one line, come to by one way."""
    found: dict[tuple[Place, ...], dict[tuple[str, int], Calls]] = {}
    for rank in ranks:
        for call in rank.collectives:
            group = rank.groups.get(call.group)
            is_whole = group is not None and len(group.ranks) == len(ranks)
            if call.place and is_whole and wanted(call):
                of_way = found.setdefault((*call.way, call.place), {})
                of_way.setdefault((call.group, call.seq), {})[rank.rank] = call
    return [[calls for calls in of.values() if len(calls) == len(ranks)] for of in found.values()]


def reads_after(rank: RankEvidence, every: Sequence[Calls]) -> Iterator[tuple[int, Read]]:
    """The numbers that a rank read after each of these, and before the next from that line.

    Each with the number of the reduction.
    """
    own = every[0][rank.rank]
    line = own.place, own.way
    begun = sorted(call.begun for call in rank.collectives if (call.place, call.way) == line)
    for number, calls in enumerate(every):
        since = calls[rank.rank].begun
        until = next((each for each in begun if each > since), math.inf)
        for read in rank.of(Read):
            if read.place and since < read.time < until and not read.many:
                yield number, read
