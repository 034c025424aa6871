"""DDP305: an optimizer holds a copy of the parameters that DDP reduces, and nobody holds these.

Seen at several steps, the last look included: parameters of the wrapper have gradients and are in
no optimizer that has stepped, and this one holds others of the same shapes that are in no wrapper
and have none. It was made over a copy of the model, or over parts that were replaced by their like.
Who keeps such a copy on purpose, as in another precision, gives it gradients before the step.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import RankEvidence
from ddpdoctor.evidence.events.unheld import Unheld

_ENOUGH = 3


@detector(precedence=401)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, of the first optimizer of which that is so on every rank."""
    found = [_last(rank) for rank in case.evidence.ranks]
    first = next(iter(found), None)
    if first is None or any(each is None for each in found):
        return
    if any(
        (each.optimizer, each.wrapper) != (first.optimizer, first.wrapper) for each in found if each
    ):
        return
    ranks = tuple(rank.rank for rank in case.evidence.ranks)
    wrapper = case.evidence.ranks[0].wrappers[first.wrapper]
    more = f" and {first.left - len(first.names)} more" if first.left > len(first.names) else ""
    yield Finding(
        code="DDP305",
        title="untrained-parameters",
        severity="warning",
        certainty="evidence",
        ranks=ranks,
        places=(
            RankPlace(ranks=ranks, place=first.place, doing="optimizer.step()"),
            RankPlace(ranks=ranks, place=wrapper.place, doing="wrapped the model"),
        ),
        cause=f"{', '.join(first.names)}{more} have gradients, and no optimizer holds them; this "
        f"one holds {first.idle} others that have none, of the same shapes among them: it was made "
        "over a copy, or before they were replaced.",
        cure=Cure(text="Make the optimizer from the parameters of the model that is wrapped."),
    )


def _last(rank: RankEvidence) -> Unheld | None:
    """The last look at the first optimizer that was so at several."""
    looks: dict[tuple[int, int], list[Unheld]] = {}
    for each in rank.of(Unheld):
        looks.setdefault((each.optimizer, each.wrapper), []).append(each)
    for seen in looks.values():
        if len(seen) >= _ENOUGH and all(each.left for each in seen[-_ENOUGH:]):
            return seen[-1]
    return None
