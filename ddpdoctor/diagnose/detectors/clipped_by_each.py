"""DDP306: each rank clips its own gradients, and then they are put together by hand.

Proven, of steps without a DDP, and of such whose last pass no_sync() has kept local: what clipping
left was another thing on each rank, and what the optimizer then stepped on was equal to the bit,
and no rank's own. So the limit was held by parts and not by what is used: a rank with large
gradients has less of a say, and the average is not that of one process with all the samples.
Nothing is said where no gradient was ever over the limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.detectors.by_hand import lines_of, trained_by_hand
from ddpdoctor.diagnose.replicas import Replica, differing, groups
from ddpdoctor.evidence import Place, RankEvidence, Sample
from ddpdoctor.evidence.events.by_hand import ByHand

_ENOUGH = 2

Look = Sequence[ByHand] | Sequence[Sample]
"""What each rank has clipped, and was about to step on, at one step."""


@detector(precedence=416)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, of the first optimizer of which that is so."""
    ranks = [rank for rank in case.evidence.ranks if rank.groups]
    if len(ranks) < 2 or not case.ended_well:
        return
    for looks, step in _trainings(case, ranks):
        looks = [look for look in looks if all(each.clipped for each in look)]
        if len(looks) < _ENOUGH or not all(map(_are_parts, looks)):
            continue
        if not any(each.clip_bit for look in looks for each in look):
            continue
        numbers = tuple(rank.rank for rank in ranks)
        yield Finding(
            code="DDP306",
            title="clip-before-sync",
            severity="warning",
            certainty="proven",
            ranks=numbers,
            places=(
                RankPlace(ranks=numbers, place=looks[0][0].clipped_at, doing="clip_grad_norm_()"),
                *lines_of(ranks, "all_reduce", "puts gradients together"),
                RankPlace(ranks=numbers, place=step, doing="optimizer.step()"),
            ),
            cause="each rank clips the gradients of its own samples, and they are put together "
            "after that: what the optimizer steps on was never clipped as a whole.",
            cure=Cure(text="Put the gradients together first, then clip, and then step."),
        )
        return


def _trainings(
    case: Case, ranks: list[RankEvidence]
) -> Iterator[tuple[Sequence[Look], Place | None]]:
    """What was seen of each optimizer, without a DDP or with one; and the line that steps."""
    for _, looks in trained_by_hand(case):
        yield looks, looks[0][0].place if looks else None
    for _, replicas in groups(case):
        if len(replicas) == len(ranks):
            yield _samples(replicas), replicas[0].training.places.get("step")


def _samples(replicas: tuple[Replica, ...]) -> list[list[Sample]]:
    """Those steps at which all of them were looked at."""
    steps = sorted(set.intersection(*({*each.samples} for each in replicas)))
    return [[each.samples[step] for each in replicas] for step in steps]


def _are_parts(look: Look) -> bool:
    """Whether each rank has clipped something else, and all step on the same of all of it."""
    names = set.intersection(*(set(each.clipped) & set(each.gradients) for each in look))
    parts = differing([{name: each.clipped[name] for name in names} for each in look])
    return bool(parts) and all(
        len({each.gradients[name] for each in look}) == 1
        and look[0].gradients[name] not in {each.clipped[name] for each in look}
        for name in parts
    )
