"""DDP209: a loader was given both shuffle and a sampler."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector

_MESSAGE = "sampler option is mutually exclusive with shuffle"


@detector(precedence=255)
def detect(case: Case) -> Iterator[Finding]:
    """Name the ranks that torch refused the loader."""
    hit = [each for each in case.raised if _MESSAGE in each.exception.message]
    if not hit:
        return
    case.explain(*hit)
    ranks = tuple(each.rank.rank for each in hit)
    exception = hit[0].exception
    yield Finding(
        code="DDP209",
        title="shuffle-with-sampler",
        severity="error",
        certainty="proven",
        ranks=ranks,
        places=(RankPlace(ranks=ranks, place=exception.place, doing=f"raised {exception.type}"),),
        cause="the DataLoader is given shuffle=True and a sampler, and either decides the order.",
        cure=Cure(text="Leave shuffle out of the loader; shuffle in DistributedSampler(shuffle=)."),
        evidence=(exception.message,),
        consequences=case.consequences(),
    )
