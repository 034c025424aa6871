"""DDP204: some ranks alone have drawn from the generator that puts the data in order on all.

Seen: one line put the same numbers into a random order on all ranks, at first from one state of the
generator, and later from unlike ones; and in between some ranks drew from it at a line at which the
others did not. Since then each rank has an order of its own, and with it other batches, or another
number of them. It is told where the ranks have parted, and nothing else is known to have done it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.parting import explain_parting, has_parted, struck
from ddpdoctor.evidence import Place, RankEvidence, named
from ddpdoctor.evidence.events.reordered import Reordered


@detector(precedence=317)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, of the first line whose orders part so."""
    ranks = [rank for rank in case.evidence.ranks if rank.of(Reordered)]
    met = struck(case)
    parted = {*map(id, (*case.died, *case.raised))} <= {*map(id, met)} if met else has_parted(case)
    if not parted or len(ranks) < max(2, len(case.evidence.ranks)):
        return
    for place in dict.fromkeys(each.place for each in ranks[0].of(Reordered)):
        if (found := _parting(ranks, place)) is not None:
            case.explain(*met)
            yield _finding(ranks, place, found, explain_parting(case))
            return


def _parting(ranks: list[RankEvidence], place: Place) -> dict[int, Reordered] | None:
    """By rank, its first draw alone between the last order that was of all and the next."""
    orders = [[n for n, e in enumerate(r.of(Reordered)) if e.place == place] for r in ranks]
    before: list[int] | None = None
    for at in map(list, zip(*orders, strict=False)):
        here = [rank.of(Reordered)[n] for rank, n in zip(ranks, at, strict=True)]
        if len({(each.by, each.content) for each in here}) > 1 or not here[0].content:
            return None
        if len({each.state for each in here}) > 1:
            return _alone(ranks, before, at, here[0].by) if before is not None else None
        before = at
    return None


def _alone(
    ranks: list[RankEvidence], before: list[int], until: list[int], by: str
) -> dict[int, Reordered] | None:
    between = [
        [each for each in rank.of(Reordered)[since + 1 : end] if each.by == by]
        for rank, since, end in zip(ranks, before, until, strict=True)
    ]
    common = set.intersection(*({each.place for each in own} for own in between))
    alone = {
        rank.rank: own[0]
        for rank, all_own in zip(ranks, between, strict=True)
        if (own := [each for each in all_own if each.place not in common])
    }
    return alone if 0 < len(alone) < len(ranks) else None


def _finding(
    ranks: list[RankEvidence],
    place: Place,
    found: dict[int, Reordered],
    consequences: tuple[str, ...],
) -> Finding:
    numbers, some = tuple(rank.rank for rank in ranks), tuple(sorted(found))
    drawn = found[some[0]]
    return Finding(
        code="DDP204",
        title="sampler-seed-per-rank",
        severity="error",
        certainty="evidence",
        ranks=some,
        places=(
            RankPlace(ranks=some, place=drawn.place, doing="draws, and the others do not"),
            RankPlace(ranks=numbers, place=place, doing="puts in order, from unlike states since"),
            *callers(some, drawn.way, drawn.place),
        ),
        cause=f"{named(some)} alone drew from the generator of {drawn.by} at {drawn.place}, and "
        f"what puts the data in order at {place} has started from another state on each rank since "
        "then: their batches are no longer of one order, and need not be as many.",
        cure=Cure(text="Put the data in order with a generator of its own, seeded alike by epoch."),
        consequences=consequences,
    )
