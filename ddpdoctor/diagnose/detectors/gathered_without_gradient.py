"""DDP316: what all_gather was given carries a graph, and what it gives carries none.

Seen is the call alone. Many gather a loss to print it, or put their own part back afterwards, so
this is a note; `annotate` makes it a warning where lint says that a loss is computed of the result.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Collective, Place, named

_GATHERED = ("all_gather", "all_gather_into_tensor")
_ENOUGH = 2


@detector(precedence=439)
def detect(case: Case) -> Iterator[Finding]:
    """One finding for each line, in a training that ended well or goes on."""
    if not case.ended_well:
        return
    lines: dict[Place, dict[int, list[Collective]]] = {}
    for rank in case.evidence.ranks:
        for call in rank.collectives:
            if call.graph and call.op in _GATHERED and call.place is not None and rank.wrappers:
                lines.setdefault(call.place, {}).setdefault(rank.rank, []).append(call)
    for place, calls in lines.items():
        if min(map(len, calls.values())) < _ENOUGH:
            continue
        ranks = tuple(sorted(calls))
        first = calls[ranks[0]][0]
        yield Finding(
            code="DDP316",
            title="gathered-without-gradient",
            severity="info",
            certainty="evidence",
            is_suspicion=True,
            ranks=ranks,
            places=(
                RankPlace(ranks=ranks, place=place, doing=f"{first.op} of what has a graph"),
                *callers(ranks, first.way, place),
            ),
            cause=f"{named(ranks)} gather what has a graph, and {first.op} gives none: a loss of "
            "the result has no gradient through what comes from the other ranks, nor through a "
            "rank's own part.",
            cure=Cure(
                text="Use torch.distributed.nn.functional.all_gather, or put the rank's own part "
                "back: gathered[rank] = features."
            ),
        )
