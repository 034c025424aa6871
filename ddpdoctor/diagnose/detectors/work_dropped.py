"""DDP414: a collective was started, and its handle let go: nobody has waited for the result.

Proven is that nobody waited for this handle, nor asked it whether it was done. What is read
of the tensor meanwhile may be the old value, the new one, or a mixture.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Place, named
from ddpdoctor.evidence.events.dropped import Dropped


@detector(precedence=404)
def detect(case: Case) -> Iterator[Finding]:
    """One finding for each line."""
    lines: dict[Place, dict[int, Dropped]] = {}
    for rank in case.evidence.ranks:
        for dropped in rank.of(Dropped):
            if dropped.place is not None:
                lines.setdefault(dropped.place, {}).setdefault(rank.rank, dropped)
    for place, ones in lines.items():
        ranks = tuple(sorted(ones))
        op = ones[ranks[0]].op
        yield Finding(
            code="DDP414",
            title="work-not-awaited",
            severity="error",
            certainty="proven",
            ranks=ranks,
            places=(RankPlace(ranks=ranks, place=place, doing=f"{op}, and lets its handle go"),),
            cause=f"{named(ranks)} started {op} and let its handle go: nobody has waited for it.",
            cure=Cure(text="Keep the handle, and wait() before the tensor is read or changed."),
        )
