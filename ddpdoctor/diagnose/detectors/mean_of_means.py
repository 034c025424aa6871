"""DDP309: each rank divides its loss by a count of its own, and DDP weighs all ranks alike.

Seen: over three steps or more, one line took a mean of numbers of terms (targets that are not
ignored, masked residues, atoms) that were far apart on the ranks. A term on the rank with few then
weighs more than one on a rank with many. Who reduces the counts of these steps knows of it, and is
left alone; so is who makes batches of unlike numbers of samples, and takes the mean over samples:
one process would weigh them as unequally from step to step.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from statistics import geometric_mean

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Place, RankEvidence, named
from ddpdoctor.evidence.events.means import Mean

_ENOUGH = 3
_WIDELY = 1.5
"""The ratio of most to fewest, on an average of the steps: masks at random give less, which does
little harm."""
_TELLING = 64
"""Elements, up to which what ranks exchange may be counts."""

Counts = dict[Place, dict[int, dict[int, int]]]
"""Terms by line, step and rank."""


@detector(precedence=434)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, at the line where the counts are farthest apart."""
    ranks = [rank for rank in case.evidence.ranks if rank.wrappers]
    if len(ranks) < 2 or not case.ended_well or any(map(_exchanges_counts, ranks)):
        return
    packed = frozenset.intersection(*map(_packed, ranks))
    apart = {
        place: whole
        for place, steps in _counts(ranks).items()
        if place not in packed
        and len(whole := [of for of in steps.values() if len(of) == len(ranks)]) >= _ENOUGH
        and geometric_mean(map(_ratio, whole)) >= _WIDELY
    }
    if not apart:
        return
    place = max(apart, key=lambda each: max(map(_ratio, apart[each])))
    widest = max(apart[place], key=_ratio)
    numbers = tuple(sorted(widest))
    told = ", ".join(f"{widest[rank]} on rank {rank}" for rank in numbers[:8])
    yield Finding(
        code="DDP309",
        title="mean-of-means",
        severity="warning",
        certainty="evidence",
        ranks=numbers,
        places=(RankPlace(ranks=numbers, place=place, doing="takes the mean of its own terms"),),
        cause=f"the loss is a mean over {told}, and DDP weighs {named(numbers)} alike: a term "
        f"counts up to {_ratio(widest):.1f} times as much as another.",
        cure=Cure(
            text="Divide the local sum by the count of all ranks (all_reduce it), and multiply by "
            "the number of ranks."
        ),
        evidence=(
            f"{geometric_mean(map(_ratio, apart[place])):.1f} times as much on an average of the "
            f"{len(apart[place])} steps that were looked at",
        ),
    )


def _counts(ranks: list[RankEvidence]) -> Counts:
    found: Counts = {}
    for rank in ranks:
        for mean in rank.of(Mean):
            by_rank = found.setdefault(mean.place, {}).setdefault(mean.step, {})
            by_rank[rank.rank] = by_rank.get(rank.rank, 0) + mean.terms
    return found


def _packed(rank: RankEvidence) -> frozenset[Place]:
    """Lines where its means are over the samples of batches, which a sampler of its own fills."""
    if all(loader.batch_size is not None for loader in rank.loaders if loader.trains):
        return frozenset()
    found: dict[Place, list[Mean]] = {}
    for mean in rank.of(Mean):
        found.setdefault(mean.place, []).append(mean)
    return frozenset(
        place
        for place, means in found.items()
        if all(mean.terms == mean.samples for mean in means)
        and len({mean.terms for mean in means}) > 1
    )


def _ratio(of: dict[int, int]) -> float:
    return max(of.values()) / min(of.values())


def _exchanges_counts(rank: RankEvidence) -> bool:
    """Whether its own lines exchange whole numbers in a step that was looked at."""
    windows = {(mean.since, mean.time) for mean in rank.of(Mean)}
    return any(
        call.place is not None
        and call.op != "barrier"
        and not call.content
        and sum(map(prod, call.shapes)) <= _TELLING
        and any(since <= call.begun <= until for since, until in windows)
        for call in rank.collectives
    )
