"""DDP413 in silence: buffers were registered in another order on some ranks.

Proven by the names at the wrap. DDP broadcasts in the order of registration and never looks at
names, so a buffer gets the values of another one of the same size.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import named
from ddpdoctor.evidence.events.layout import Layout


@detector(precedence=396)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, at the first wrapper whose names are the same and their order is not."""
    layouts: dict[int, dict[int, Layout]] = {}
    for rank in case.evidence.ranks:
        for layout in rank.of(Layout):
            layouts.setdefault(layout.wrapper, {})[rank.rank] = layout
    for number, of in layouts.items():
        orders = {layout.buffers for layout in of.values()}
        names = {frozenset(order) for order in orders}
        if len(orders) < 2 or len(names) > 1:
            continue
        first, *others = (of[rank] for rank in sorted(of))
        other = next(each for each in others if each.buffers != first.buffers)
        at = next(
            n
            for n, pair in enumerate(zip(first.buffers, other.buffers, strict=True))
            if pair[0] != pair[1]
        )
        case.told.add("DDP413")
        ranks = tuple(sorted(of))
        place = case.evidence.ranks[ranks[0]].wrappers[number].place
        yield Finding(
            code="DDP413",
            title="unordered-registration",
            severity="error",
            certainty="proven",
            ranks=ranks,
            places=(
                RankPlace(ranks=ranks, place=first.makers[at], doing="registers buffers"),
                RankPlace(ranks=ranks, place=place, doing="wraps the model"),
            ),
            cause=f"buffer {at + 1} is {first.buffers[at]} on one rank and {other.buffers[at]} on "
            f"another ({named(ranks)}): DDP broadcasts by this order, so one gets the other's "
            "values.",
            cure=Cure(text="Register in one order: sort what comes from a set or a listing."),
        )
        return
