"""DDP203: the workers of a loader are kept, and never learn of the epoch that the data set is told.

Seen on every rank: the loader keeps its workers, which have the copy of the data set that they were
started with; and a number that the data set's own methods read as they give samples was another one
when a later pass began. What else may have told the workers is not seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose import loaders
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence.events.stale import Stale


@detector(precedence=477)
def detect(case: Case) -> Iterator[Finding]:
    """One finding for each loader that is trained by."""
    for kin in loaders.kin(case.evidence):
        if len(kin) < 2 or not any(loader.trains for loader in kin.values()):
            continue
        seen = {
            rank.rank: each
            for rank in case.evidence.ranks
            for each in reversed(rank.of(Stale))
            if rank.rank in kin and rank.loaders[each.loader] is kin[rank.rank]
        }
        if len(seen) < len(kin):
            continue
        ranks, first = tuple(sorted(kin)), seen[min(kin)]
        yield Finding(
            code="DDP203",
            title="missing-set-epoch",
            severity="warning",
            certainty="evidence",
            ranks=ranks,
            places=(
                *loaders.places(kin, "built the loader", sampler="built the sampler"),
                RankPlace(ranks=ranks, place=first.place, doing=f"goes by {first.name}"),
            ),
            cause=f"the workers of this loader are kept between passes (persistent_workers), with "
            f"the data set as it was when they were started: {first.name} is {first.now} when pass "
            f"{first.number} begins, and theirs is {first.was} still.",
            cure=Cure(
                text="Do not keep the workers, or hand the number over in what they share (a "
                "tensor in shared memory), or let the sampler shuffle, which is in this process."
            ),
        )
