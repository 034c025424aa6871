"""DDP208: a metric is summed over a sampler that repeats samples to make the shards equal."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose import loaders
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.sharing import handed_over
from ddpdoctor.evidence import Collective, Loader, RankEvidence

_REDUCED = ("all_reduce", "reduce")
_GATHERED = ("all_gather", "gather", "all_to_all")
_METRIC = 4096
"""Elements, up to which what is reduced may be a metric."""


@detector(precedence=465)
def detect(case: Case) -> Iterator[Finding]:
    """Name the loaders that are evaluated with padding."""
    for kin in loaders.kin(case.evidence):
        if len(kin) < len(case.evidence.ranks) or any(each.trains for each in kin.values()):
            continue
        first = kin[0]
        extra = min(_repeated(each) for each in kin.values())
        metric = _metric(case.evidence.ranks[0], first)
        if extra == 0 or metric is None or first.sampler is None or handed_over(case.evidence):
            continue
        length = first.sampler.length
        ranks = tuple(sorted(kin))
        yield Finding(
            code="DDP208",
            title="padded-evaluation",
            severity="warning",
            certainty="evidence",
            ranks=ranks,
            places=(
                *loaders.places(kin, "built the loader", sampler="built the sampler"),
                RankPlace(ranks=ranks, place=metric.place, doing=f"{metric.op} of the metric"),
            ),
            cause=f"the sampler repeats {extra} of {length} samples to give {len(kin)} ranks equal "
            "shards, and the metric counts them twice.",
            cure=Cure(text="Evaluate on unpadded shards, and sum hits and counts over the ranks."),
            evidence=(f"{length} samples over {len(kin)} ranks; drop_last=False",),
        )


def _repeated(loader: Loader) -> int:
    sampler = loader.sampler
    if sampler is None or sampler.drop_last or sampler.type != "DistributedSampler":
        return 0
    whole = any(epoch.ended and not epoch.graded for epoch in loader.epochs.values())
    return -sampler.length % sampler.num_replicas if whole else 0


def _metric(rank: RankEvidence, loader: Loader) -> Collective | None:
    """What the user's code sums between a whole pass and the next pass over anything.

    Where samples are gathered instead, the surplus may be cut off; so it may be where ranks hand
    each other files.
    """
    for epoch in loader.epochs.values():
        after = loaders.told_after(rank, epoch)
        if any(c.op in _GATHERED for c in after):
            return None
        sums = (c for c in after if c.op in _REDUCED and c.reduce_op in ("SUM", "AVG", None))
        found = next((c for c in sums if c.shapes and prod(c.shapes[0]) <= _METRIC), None)
        if found is not None:
            return found
    return None
