"""DDP208: samples that accelerate repeats to fill the last batch were gathered with the others.

Proven: a line has gathered more rows than samples were left, at the end of a loader whose last
batch is filled up. Whether a metric counts them, or the surplus is cut off afterwards, the source
says: it is told where lint reads so (`annotate`).
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Place, named
from ddpdoctor.evidence.events.surplus import Surplus


@detector(precedence=464)
def detect(case: Case) -> Iterator[Finding]:
    """One finding for each line."""
    lines: dict[Place, dict[int, Surplus]] = {}
    for rank in case.evidence.ranks:
        for each in rank.of(Surplus):
            if each.place is not None:
                lines.setdefault(each.place, {}).setdefault(rank.rank, each)
    for place, found in lines.items():
        ranks = tuple(sorted(found))
        first = found[ranks[0]]
        again = first.gathered - first.samples
        yield Finding(
            code="DDP208",
            title="padded-evaluation",
            severity="info",
            certainty="evidence",
            is_suspicion=True,
            ranks=ranks,
            places=(RankPlace(ranks=ranks, place=place, doing="gathers the last batch whole"),),
            cause=f"of the {first.gathered} samples that {named(ranks)} gathered last, {again} "
            f"{'is one' if again == 1 else 'are some'} of the first again: accelerate fills up the "
            "last batch with them, and by the source nothing takes them off again.",
            cure=Cure(text="Use accelerator.gather_for_metrics(...), which leaves them out."),
        )
