"""DDP422: a collective of the script's own inside of `Join`, which shadows DDP's alone.

Seen: the ranks were inside of Join and parted there, or crashed, and a line of the user's called a
collective between the entry and the exit. A rank that has run out of data answers the collectives
of DDP, and nobody's else.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, first_line
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.histories import mismatches
from ddpdoctor.diagnose.parting import explain_parting
from ddpdoctor.evidence import Collective, RankEvidence


@detector(precedence=298)
def detect(case: Case) -> Iterator[Finding]:
    """The line that communicates inside, where the job has failed or hangs."""
    ranks = [rank for rank in case.evidence.ranks if rank.joins]
    incident = case.raised or case.died or case.deadlock or case.casualties
    if len(ranks) < 2 or not (incident or any(mismatches(case.evidence.ranks))):
        return
    inside = {rank.rank: calls for rank in ranks if (calls := _inside(rank))}
    if not inside:
        return
    call = inside[min(inside)][-1]
    told = [
        f"rank {each.rank.rank} raised {each.exception.type}: {first_line(each.exception.message)}"
        for each in case.raised
    ]
    case.told.add("DDP422")
    case.explain(*case.raised, *case.died)
    consequences = explain_parting(case)
    numbers = tuple(sorted(inside))
    yield Finding(
        code="DDP422",
        title="collective-inside-join",
        severity="error",
        certainty="evidence",
        ranks=numbers,
        places=(RankPlace(ranks=numbers, place=call.place, doing=f"{call.op}, inside of Join"),),
        cause=f"{call.op} ({call.place}) is called inside of Join: a rank that has run out of data "
        "shadows DDP's collectives, and not this one.",
        cure=Cure(text="Reduce after Join, or pass throw_on_early_termination=True."),
        consequences=(*told, *consequences),
    )


def _inside(rank: RankEvidence) -> list[Collective]:
    """What the user's own lines have called since Join was entered."""
    return [c for c in rank.collectives if c.in_join and c.op != "barrier"]
