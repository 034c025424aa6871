"""DDP305 as a crash: DDP waits for the gradient of a parameter that was replaced after the wrap."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised
from ddpdoctor.diagnose.detecting import detector

_MESSAGE = "Expected to have finished reduction in the prior iteration"


@detector(precedence=280)
def detect(case: Case) -> Iterator[Finding]:
    """Where a step was seen to train parameters that DDP did not know of, those are the reason."""
    hit = [each for each in case.raised if _MESSAGE in each.exception.message and _late(each)]
    if not hit:
        return
    case.explain(*hit)
    ranks = tuple(each.rank.rank for each in hit)
    names = ", ".join(_late(hit[0]))
    lines = [
        RankPlace(ranks=ranks, place=training.places["added"], doing="added to the wrapped model")
        for training in hit[0].rank.training.values()
        if "added" in training.places
    ]
    raised = RankPlace(ranks=ranks, place=hit[0].exception.place, doing="raised RuntimeError")
    yield Finding(
        code="DDP305",
        title="late-parameter",
        severity="error",
        certainty="proven",
        ranks=ranks,
        places=(*lines[:1], raised),
        cause=f"{names} came after the wrap: DDP waits for the parameters that they replaced, and "
        "those have no gradient any more.",
        cure=Cure(text="Change the model first, then wrap it."),
        consequences=case.consequences(),
    )


def _late(raised: Raised) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for each in raised.rank.samples for name in each.late))
