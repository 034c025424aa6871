"""DDP420: a collective is to fill tensors that share their memory, as those of `[zeros] * n` do.

Proven by the call itself: two of the tensors that it was given begin at one address, so what one
rank sends overwrites what another has sent.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Collective, Place, named


@detector(precedence=402)
def detect(case: Case) -> Iterator[Finding]:
    """One finding for each line."""
    lines: dict[Place, dict[int, Collective]] = {}
    for rank in case.evidence.ranks:
        for call in rank.collectives:
            if call.aliased and call.place is not None:
                lines.setdefault(call.place, {}).setdefault(rank.rank, call)
    for place, calls in lines.items():
        ranks = tuple(sorted(calls))
        first = calls[ranks[0]]
        yield Finding(
            code="DDP420",
            title="aliased-outputs",
            severity="error",
            certainty="proven",
            ranks=ranks,
            places=(
                RankPlace(ranks=ranks, place=place, doing=f"{first.op} into one tensor, n times"),
                *callers(ranks, first.way, place),
            ),
            cause=f"the tensors that {first.op} is to fill on {named(ranks)} share their memory: "
            "what it gathers from one rank overwrites what it has gathered from another.",
            cure=Cure(text="Make a tensor for each: [torch.zeros_like(x) for _ in range(n)]."),
        )
