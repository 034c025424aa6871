"""DDP400 host-lost: nothing is heard of a host any more, and ranks elsewhere wait for its ranks."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, is_casualty, sides
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.waiting import held_up
from ddpdoctor.evidence import RankEvidence, named

LONG = 7.0
"""Seconds after which it is told: TCP finds a link that was down for 3 s again within these."""


@detector(precedence=301)
def detect(case: Case) -> Iterator[Finding]:
    """Its ranks may be well, and the link alone be down: evidence of the host, and no proof."""
    lost = [rank for rank in case.evidence.ranks if rank.unheard > LONG and rank.fate is None]
    if not lost:
        return
    absent = {rank.rank for rank in lost}
    held = [each for each in held_up(case.evidence) if each.rank not in absent]
    for_them = {id(each.waits_for): not absent.isdisjoint(each.waits_for) for each in held}
    waits = [each for each in held if for_them[id(each.waits_for)]]
    broken = [each for each in (*case.raised, *case.casualties) if each.rank.rank not in absent]
    others = case.died or any(not is_casualty(each.exception) for each in broken)
    if not (waits or broken) or others:
        return
    case.explain(*case.raised)
    ranks = tuple(sorted(absent))
    hosts = ", ".join(dict.fromkeys(rank.host for rank in lost))
    waiting = tuple(sorted({each.rank for each in waits} | {each.rank.rank for each in broken}))
    yield Finding(
        code="DDP400",
        title="host-lost",
        severity="error" if broken else "warning",
        certainty="evidence",
        has_lasted=True,
        ranks=ranks,
        places=(*map(_last_heard, lost), *sides(waits)),
        cause=f"nothing is heard of {hosts}, which runs {named(ranks)}, for "
        f"{max(rank.unheard for rank in lost):.0f} s, and {named(waiting)} "
        f"wait{'s' * (len(waiting) == 1)} for it: the host is down, or the link to it is.",
        cure=Cure(text="Look whether the host lives and can be reached; then at its doctor there."),
        consequences=case.consequences(),
    )


def _last_heard(rank: RankEvidence) -> RankPlace:
    seen = rank.stuck or rank.working
    return RankPlace(
        ranks=(rank.rank,),
        place=seen.place if seen is not None else None,
        doing="was last heard of here" if seen is not None else "was last heard of",
    )
