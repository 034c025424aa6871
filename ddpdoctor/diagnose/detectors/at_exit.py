"""DDP409: a collective in an atexit hook keeps a rank alive that has failed or left early."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, sides
from ddpdoctor.diagnose.detecting import detector


@detector(precedence=220)
def detect(case: Case) -> Iterator[Finding]:
    """Name the ranks that wait at exit; what ended their work before is part of the evidence."""
    if case.deadlock is None:
        return
    held = [each for each in case.deadlock.blocked if each.collective.at_exit]
    peers = [each for each in case.deadlock.blocked if not each.collective.at_exit]
    if not held or not (peers or case.deadlock.gone):
        return
    ranks = {each.rank for each in held}
    raised = [each for each in case.raised if each.rank.rank in ranks]
    case.explain(case.deadlock, *raised)
    told = [
        f"rank {each.rank.rank} had raised {each.exception.type} at {each.exception.place}"
        for each in raised
    ]
    yield Finding(
        code="DDP409",
        title="atexit-barrier",
        severity="error",
        certainty="proven",
        ranks=tuple(sorted(ranks)),
        places=(
            RankPlace(
                ranks=tuple(sorted(ranks)),
                place=held[0].collective.place,
                doing=f"{held[0].collective.op} #{held[0].collective.seq} at exit",
                waits_for=held[0].waits_for,
            ),
            *(
                RankPlace(
                    ranks=(each.rank.rank,),
                    place=each.exception.place,
                    doing=f"raised {each.exception.type}",
                )
                for each in raised
            ),
            *sides(peers),
        ),
        cause=f"a {held[0].collective.op} in an atexit hook keeps the rank alive when its work is "
        "over, and the peers wait for it in another collective.",
        cure=Cure(text="Call no collective at exit: destroy the group where it was made."),
        evidence=tuple(told),
        consequences=case.consequences(),
    )
