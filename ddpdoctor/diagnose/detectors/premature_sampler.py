"""DDP201: a DistributedSampler was built before the process group."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised, callers
from ddpdoctor.diagnose.detecting import detector


@detector(precedence=230)
def detect(case: Case) -> Iterator[Finding]:
    """Name the ranks whose sampler asked for a group that did not exist yet."""
    hit = [each for each in case.raised if _is_premature(each)]
    if not hit:
        return
    case.explain(*hit)
    ranks = tuple(each.rank.rank for each in hit)
    exception = hit[0].exception
    yield Finding(
        code="DDP201",
        title="premature-sampler",
        severity="error",
        certainty="proven",
        ranks=ranks,
        places=(
            RankPlace(ranks=ranks, place=exception.place, doing=f"raised {exception.type}"),
            *callers(ranks, exception.user, exception.place),
        ),
        cause="DistributedSampler asks the default process group for rank and world size, and "
        "init_process_group has not been called yet.",
        cure=Cure(text="Initialise the process group first, or pass num_replicas and rank."),
        evidence=(exception.message,),
        consequences=case.consequences(),
    )


def _is_premature(raised: Raised) -> bool:
    exception = raised.exception
    in_sampler = any(frame.function == "DistributedSampler.__init__" for frame in exception.frames)
    return in_sampler and "Default process group has not been initialized" in exception.message
