"""DDP202: every rank trains on the same samples, because nothing deals them out."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose import loaders
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Sampler


@detector(precedence=455, of_absence=True)
def detect(case: Case) -> Iterator[Finding]:
    """Name the loaders whose batches are the same on all ranks, or go through all of one set."""
    for kin in loaders.training(case.evidence):
        told = _told_one_rank(kin)
        is_one_set = _is_one_set(kin)
        if not (is_one_set or (told and _are_as_long(kin))) or loaders.is_split_later(kin):
            continue
        in_order = _is_one_order(kin)
        if not in_order and not _is_exhausted(kin):
            continue
        first = kin[0]
        order = "in the same order" if in_order else "each in an order of its own"
        through = f"all {first.length} samples of {first.dataset}"
        if first.sampler is not None or first.deals:
            through = f"the same samples of {first.dataset}"
        cause = f"{len(kin)} times the work of one rank for the same epoch."
        cure = "Give the loader a DistributedSampler, and call its set_epoch."
        if told is not None:
            cause = f"its sampler deals out part {told.rank} on each, the others are never read."
            cure = "Give the sampler the rank of the process: rank=dist.get_rank(), or none."
        yield Finding(
            code="DDP202",
            title="no-sampler",
            severity="warning",
            certainty="proven" if in_order and is_one_set else "evidence",
            ranks=tuple(sorted(kin)),
            places=(
                *(_sampled(kin, told) if told else ()),
                *loaders.places(kin, f"built the loader of {first.dataset}"),
            ),
            cause=f"every rank trains on {through}, {order}: {cause}",
            cure=Cure(text=cure),
            evidence=(f"{loaders.first_epoch(first).batches} batches an epoch on every rank",),
        )


def _told_one_rank(kin: loaders.Kin) -> Sampler | None:
    """The sampler of torch's that deals out one and the same part on all ranks, if there is one."""
    samplers = [each.sampler for each in kin.values() if each.sampler is not None]
    is_torchs = all(each.type == "DistributedSampler" for each in samplers)
    if len(samplers) != len(kin) or not is_torchs or len({each.rank for each in samplers}) > 1:
        return None
    return samplers[0] if all(each.num_replicas == len(kin) for each in samplers) else None


def _sampled(kin: loaders.Kin, sampler: Sampler) -> Iterator[RankPlace]:
    if sampler.place is not None:
        doing = f"built the sampler as rank {sampler.rank}"
        yield RankPlace(ranks=tuple(sorted(kin)), place=sampler.place, doing=doing)


def _is_one_set(kin: loaders.Kin) -> bool:
    """Whether the ranks hold the same samples, and no code of the user's deals them out."""
    if any(each.iterable or each.by_rank for each in kin.values()):
        return False
    first = kin[0]
    if not _are_as_long(kin):
        return False
    if any(each.members != first.members for each in kin.values()):
        return False
    if all(each.identity for each in kin.values()):
        return len({each.identity for each in kin.values()}) == 1
    read = {loaders.first_epoch(each).content for each in kin.values()}
    return len(read) == 1 and read != {()} and "" not in next(iter(read))


def _are_as_long(kin: loaders.Kin) -> bool:
    return len({each.length for each in kin.values()}) == 1


def _is_one_order(kin: loaders.Kin) -> bool:
    drawn = {(e.order, e.batches) for e in map(loaders.first_epoch, kin.values())}
    order, batches = next(iter(drawn))
    return len(drawn) == 1 and order is not None and batches > 1


def _is_exhausted(kin: loaders.Kin) -> bool:
    """Whether each rank went through all of the set: to its end, or by so many batches."""
    return all(
        loader.plain
        and any(
            (e.ended or e.batches == loader.batches) and e.steps and e.batches > 1
            for e in loader.epochs.values()
        )
        for loader in kin.values()
    )
