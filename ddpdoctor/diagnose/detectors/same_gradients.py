"""DDP202: ranks put gradients together that are the same on all of them already.

Proven, of steps without a DDP: what the latest backward pass had left was equal to the bit on all
ranks, at each step that was looked at, and new each time. Nothing was communicated while backward
ran, and just these gradients were reduced after it: so it was not a reduction that made them equal.
Weights that are alike give equal gradients only of the same samples.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.detectors.by_hand import Look, looks_of
from ddpdoctor.diagnose.detectors.stepped_alone import line_of_gradients
from ddpdoctor.diagnose.shuffles import common
from ddpdoctor.evidence import named
from ddpdoctor.evidence.events.by_hand import ByHand

_ENOUGH = 3


@detector(precedence=427)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, of the first optimizer of which that is so."""
    ranks = [rank for rank in case.evidence.ranks if rank.groups]
    if len(ranks) < 2 or any(rank.wrappers for rank in ranks) or not case.ended_well:
        return
    line = line_of_gradients(ranks)
    for optimizer in sorted({each.optimizer for each in ranks[0].of(ByHand)}) if line else ():
        looks = [look for look in looks_of(ranks, optimizer) if all(each.left for each in look)]
        if len(looks) < _ENOUGH or not all(map(_is_shared, looks)) or not _is_new(looks):
            continue
        numbers = tuple(rank.rank for rank in ranks)
        yield Finding(
            code="DDP202",
            title="no-sampler",
            severity="warning",
            certainty="proven",
            ranks=numbers,
            places=(
                *common(ranks),
                RankPlace(ranks=numbers, place=line, doing="reduces gradients that are alike"),
                RankPlace(ranks=numbers, place=looks[0][0].place, doing="optimizer.step()"),
            ),
            cause=f"{named(numbers)} have the same gradients to the bit before they reduce them, "
            f"at each of {len(looks)} steps that were looked at: all train on the same samples, "
            f"and do {len(ranks)} times the work of one rank.",
            cure=Cure(text="Give each rank a share of its own of the samples."),
        )
        return


def _is_shared(look: Look) -> bool:
    return all(each.left == look[0].left and not each.talked for each in look)


def _is_new(looks: list[Look]) -> bool:
    """Whether some gradient was another one each time."""
    names = set.intersection(*({*look[0].left} for look in looks))
    return any(len({tuple(look[0].left[n]) for look in looks}) == len(looks) for n in names)
