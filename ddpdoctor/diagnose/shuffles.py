"""Random orders that the ranks have made, each for itself."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import RankPlace
from ddpdoctor.evidence import RankEvidence
from ddpdoctor.evidence.events.shuffled import Shuffled


def apart(ranks: list[RankEvidence]) -> Iterator[RankPlace]:
    """The lines that made a random order from states that differ."""
    made: dict[tuple[object, int], dict[int, Shuffled]] = {}
    for rank in ranks:
        count: dict[object, int] = {}
        for each in rank.of(Shuffled):
            number = count[each.place] = count.get(each.place, -1) + 1
            made.setdefault((each.place, number), {})[rank.rank] = each
    told = set()
    for (place, _), of in made.items():
        first = next(iter(of.values()))
        if len({each.state for each in of.values()}) > 1 and place not in told:
            told.add(place)
            yield RankPlace(
                ranks=tuple(sorted(of)), place=first.place, doing=f"{first.by}, in no common order"
            )
