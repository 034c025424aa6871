"""Random orders that the ranks have made, each for itself."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import RankPlace
from ddpdoctor.diagnose.case import callers
from ddpdoctor.evidence import RankEvidence, Seed
from ddpdoctor.evidence.events.shuffled import Shuffled


def apart(ranks: list[RankEvidence], *, generators: bool = False) -> Iterator[RankPlace]:
    """The lines that made a random order from states that differ, and that seeded ranks apart.

    `generators`: where none was made so, those that made a generator of the script's own.
    """
    told = set()
    made = _made(ranks)
    if generators and not any(len({e.state for e in of.values()}) > 1 for of in made):
        made = _made(ranks, generators=True)
    for of in made:
        first = next(iter(of.values()))
        if len({each.state for each in of.values()}) > 1 and first.place not in told:
            told.add(first.place)
            numbers = tuple(sorted(of))
            doing = f"{first.by}, in no common order"
            yield RankPlace(ranks=numbers, place=first.place, doing=doing)
            yield from callers(numbers, first.way, first.place)[:1]
    if told:
        yield from seeded_apart(ranks)


def seeded_apart(ranks: list[RankEvidence]) -> list[RankPlace]:
    """Where each rank was seeded by itself, if that came before all other seeds and any wrap."""
    first: list[Seed] = [rank.seeds[0] for rank in ranks if rank.seeds]
    if len(first) < len(ranks) or any(seed.wrappers for seed in first):
        return []
    if len({seed.value for seed in first}) < len(ranks) or len({s.place for s in first}) > 1:
        return []
    numbers = tuple(rank.rank for rank in ranks)
    return [
        RankPlace(ranks=numbers, place=first[0].place, doing="seeds each rank by itself"),
        *callers(numbers, first[0].way, first[0].place)[:1],
    ]


def seeded_alike(ranks: list[RankEvidence]) -> list[RankPlace]:
    """Where all ranks were seeded last, if that was at one line and by one number."""
    last = [rank.seeds[-1] for rank in ranks if rank.seeds]
    if len(last) < len(ranks) or len({(seed.value, seed.place) for seed in last}) > 1:
        return []
    numbers, seed = tuple(rank.rank for rank in ranks), last[0]
    return [
        RankPlace(ranks=numbers, place=seed.place, doing=f"seed {seed.value} on every rank"),
        *callers(numbers, seed.way, seed.place)[:1],
    ]


def common(ranks: list[RankEvidence]) -> Iterator[RankPlace]:
    """The line that made the first random order which is the same on all, and who called it."""
    for of in _made(ranks):
        first = next(iter(of.values()))
        if len(of) == len(ranks) and len({each.state for each in of.values()}) == 1:
            numbers = tuple(sorted(of))
            yield RankPlace(
                ranks=numbers, place=first.place, doing=f"{first.by}, in the same order"
            )
            yield from callers(numbers, first.way, first.place)
            return


def _made(ranks: list[RankEvidence], *, generators: bool = False) -> list[dict[int, Shuffled]]:
    """The n-th order that a line made, by rank; or generator."""
    made: dict[tuple[object, int], dict[int, Shuffled]] = {}
    for rank in ranks:
        count: dict[object, int] = {}
        for each in rank.of(Shuffled):
            if bool(each.length) == generators:
                continue
            number = count[each.place] = count.get(each.place, -1) + 1
            made.setdefault((each.place, number), {})[rank.rank] = each
    return list(made.values())
