"""DDP411: one line makes the same group again and again, and none of them is ever destroyed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Place, RankEvidence

ENOUGH = 8
"""So many groups of the same members, alive at a time, are no design any more."""
_EXHAUSTED = "Too many open files"


@detector(precedence=310, of_absence=True)
def detect(case: Case) -> Iterator[Finding]:
    """A warning where all ended well; the cause where the descriptors ran out."""
    hit = [each for each in case.raised if _EXHAUSTED in each.exception.message]
    if not hit and not case.ended_well:
        return
    piles: dict[Place, dict[int, int]] = {}
    for rank in case.evidence.ranks:
        for place, count in _piles(rank):
            piles.setdefault(place, {})[rank.rank] = count
    if not piles:
        return
    case.explain(*hit)
    place, counts = max(piles.items(), key=lambda pile: max(pile[1].values()))
    ranks, most = tuple(sorted(counts)), max(counts.values())
    yield Finding(
        code="DDP411",
        title="missing-teardown",
        severity="error" if hit else "warning",
        certainty="proven",
        ranks=ranks,
        places=(RankPlace(ranks=ranks, place=place, doing="makes the group once more"),),
        cause=f"{most} groups of the same ranks were made here and none was destroyed: each keeps "
        "its sockets and threads, also when nothing refers to it any more.",
        cure=Cure(
            text="Make the group once, before the loop, or destroy_process_group(group) after use."
        ),
        consequences=case.consequences(),
    )


def _piles(rank: RankEvidence) -> Iterator[tuple[Place, int]]:
    if len(rank.groups) < ENOUGH:
        return
    alive = [group for group in rank.groups.values() if group.name not in rank.dissolved]
    made = Counter((group.place, group.ranks) for group in alive)
    for (place, _), count in made.items():
        if place is not None and count >= ENOUGH:
            yield place, count
