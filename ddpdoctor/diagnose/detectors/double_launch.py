"""DDP114: ranks that a launcher started have started ranks of their own."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector


@detector(precedence=105)
def detect(case: Case) -> Iterator[Finding]:
    """Only where several processes have called themselves the same rank: one child may be meant."""
    nested = [rank for rank in case.evidence.ranks if rank.nested is not None]
    most = max((len(rank.joined_by) for rank in nested), default=0)
    if most < 2:
        return
    case.explain(*case.raised, *([case.deadlock] if case.deadlock is not None else []))
    case.told.add("DDP114")
    ranks = tuple(rank.rank for rank in nested)
    started = next((rank.started_at for rank in nested if rank.started_at is not None), None)
    starts = RankPlace(ranks=ranks, place=started, doing="starts ranks once more")
    yield Finding(
        code="DDP114",
        title="double-launch",
        severity="error",
        certainty="proven",
        ranks=ranks,
        places=(
            *([starts] if started is not None else []),
            RankPlace(ranks=ranks, place=nested[0].nested, doing="joins"),
        ),
        cause=f"torchrun has started ranks, and these have started processes that join in their "
        f"place: {most} call themselves rank {nested[0].rank}.",
        cure=Cure(text="Start the ranks once: by torchrun, or by mp.spawn from plain python."),
        consequences=case.consequences(),
    )
