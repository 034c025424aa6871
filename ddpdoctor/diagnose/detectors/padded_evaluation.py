"""DDP208: a metric counts samples more than once.

It is summed over a sampler that repeats some to make the shards equal; or every rank goes through
all of one set in one order, and what it makes of each batch is gathered from all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose import loaders
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.sharing import handed_over
from ddpdoctor.evidence import Collective, Loader, Place, RankEvidence

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


@detector(precedence=471)
def whole(case: Case) -> Iterator[Finding]:
    """Name the loaders that go through all of a set on every rank, whose batches are gathered."""
    for kin in loaders.kin(case.evidence):
        if len(kin) < len(case.evidence.ranks) or len(kin) < 2 or not _is_one_pass(kin):
            continue
        if (gather := _of_each_batch(case.evidence.ranks[0], kin[0])) is None:
            continue
        ranks = tuple(sorted(kin))
        yield Finding(
            code="DDP208",
            title="padded-evaluation",
            severity="warning",
            certainty="evidence",
            ranks=ranks,
            places=(
                *loaders.places(kin, "built the loader"),
                RankPlace(ranks=ranks, place=gather.place, doing=f"{gather.op} of each batch"),
            ),
            cause=f"every rank goes through all {kin[0].length} samples of {kin[0].dataset}, and "
            f"each batch is gathered from {len(kin)} ranks: the metric has every sample "
            f"{len(kin)} times.",
            cure=Cure(
                text="Deal the samples out (a sampler, accelerator.prepare), or do not gather."
            ),
        )


def _is_one_pass(kin: loaders.Kin) -> bool:
    """Whether the ranks have gone through one set in one order, without training on it."""
    if any(e.trains or e.iterable or not e.plain or e.sampler for e in kin.values()):
        return False
    if len({(each.identity, each.length) for each in kin.values()}) > 1 or not kin[0].identity:
        return False
    first = [loaders.first_epoch(each) for each in kin.values()]
    drawn = {(each.order, each.batches) for each in first}
    whole = all(each.ended and not each.graded and each.batches > 1 for each in first)
    return whole and len(drawn) == 1 and first[0].order is not None


def _of_each_batch(rank: RankEvidence, loader: Loader) -> Collective | None:
    """What is gathered once for each batch or oftener, as many rows as a batch has."""
    epoch = loaders.first_epoch(loader)
    calls: dict[Place, list[Collective]] = {}
    for call in rank.collectives:
        is_within = epoch.begun < call.begun < (epoch.ended or 0.0)
        if is_within and call.op in _GATHERED and call.place is not None and call.shapes:
            calls.setdefault(call.place, []).append(call)
    for of in calls.values():
        rows = [call.shapes[0][0] for call in of if call.shapes[0]]
        if rows.count(loader.batch_size or 0) >= max(2, epoch.batches - 1):
            return of[0]
    return None


def _repeated(loader: Loader) -> int:
    sampler = loader.sampler
    if sampler is None or sampler.drop_last or sampler.type != "DistributedSampler":
        return 0
    whole = any(epoch.ended and not epoch.graded for epoch in loader.epochs.values())
    return -sampler.length % sampler.num_replicas if whole else 0


def _metric(rank: RankEvidence, loader: Loader) -> Collective | None:
    """What the user's code sums between a whole pass and the next pass over anything.

    Where samples are gathered instead, the surplus may be cut off; so it may be where ranks hand
    each other files. And a table with a row for each sample has none twice.
    """
    length = loader.sampler.length if loader.sampler is not None else 0
    for epoch in loader.epochs.values():
        after = loaders.told_after(rank, epoch)
        if any(c.op in _GATHERED for c in after):
            return None
        sums = (c for c in after if c.op in _REDUCED and c.reduce_op in ("SUM", "AVG", None))
        small = (c for c in sums if c.shapes and prod(c.shapes[0]) <= _METRIC)
        found = next((c for c in small if length not in c.shapes[0]), None)
        if found is not None:
            return found
    return None
