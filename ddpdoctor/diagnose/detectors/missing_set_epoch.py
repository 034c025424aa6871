"""DDP203: a sampler, torch's or the user's own, gave the same shuffled order in two epochs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose import loaders
from ddpdoctor.diagnose.case import Case, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Epoch, Loader, Sampler
from ddpdoctor.evidence.events.begun_again import BegunAgain

_FEW = 4
"""Samples, or steps, up to which an order may come again by chance."""
_PASSES = 3
"""Where set_epoch is called, an epoch may be two passes on purpose; so many it will not be."""


@detector(precedence=450)
def detect(case: Case) -> Iterator[Finding]:
    """Name the loaders that repeat themselves."""
    for kin in loaders.kin(case.evidence):
        if len(kin) < 2:
            continue
        if anew := _again(case, kin):
            yield _within_a_pass(kin, anew)
            continue
        repeated = {rank: again for rank, loader in kin.items() if (again := _repeats(loader))}
        if len(repeated) < len(kin):
            continue
        first, second = repeated[min(kin)]
        ranks, then = tuple(sorted(kin)), kin[min(kin)].epochs[second]
        yield Finding(
            code="DDP203",
            title="missing-set-epoch",
            severity="warning",
            certainty="proven",
            ranks=ranks,
            places=(
                *_mixing(ranks, kin[min(kin)], then),
                *loaders.places(kin, "built the loader", sampler="built the sampler"),
                *callers(ranks, then.way, then.place),
            ),
            cause=f"epochs {first} and {second} drew the same samples in the same order: "
            + _why(kin[min(kin)]),
            cure=Cure(text=_cure(kin[min(kin)])),
            evidence=(_told(kin[min(kin)], second),),
        )


def _again(case: Case, kin: loaders.Kin) -> BegunAgain | None:
    """What began anew within a pass of training on every rank, as the first of them has it."""
    found: dict[int, BegunAgain] = {}
    for rank in case.evidence.ranks:
        for each in rank.of(BegunAgain):
            loader = kin.get(rank.rank)
            if loader is rank.loaders[each.loader] and loader.epochs[each.number].steps:
                found.setdefault(rank.rank, each)
    return found[min(found)] if len(found) == len(kin) else None


def _within_a_pass(kin: loaders.Kin, again: BegunAgain) -> Finding:
    """The loader has but one pass; what deals its batches out goes through the samples often."""
    ranks = tuple(sorted(kin))
    return Finding(
        code="DDP203",
        title="missing-set-epoch",
        severity="warning",
        certainty="proven",
        ranks=ranks,
        places=(
            RankPlace(ranks=ranks, place=again.place, doing="shuffles"),
            *callers(ranks, again.way, again.place)[:1],
            *loaders.places(kin, "built the loader", sampler="built the sampler"),
        ),
        cause=f"by batch {again.batches} the samples were gone through twice within one pass over "
        "the loader, and begun once more, each time shuffled from one state of a random generator: "
        "in the same order.",
        cure=Cure(text=_cure(kin[ranks[0]])),
        evidence=("each time the first batch was the same samples",),
    )


def _repeats(loader: Loader) -> tuple[int, int] | None:
    """Two epochs of training, one after the other, of one order; a peek between them is none."""
    trained = [(n, epoch) for n, epoch in sorted(loader.epochs.items()) if epoch.steps]
    if loader.sampler is None:
        shuffles = _is_always_mixed_alike(loader, [epoch for _, epoch in trained])
    else:
        shuffles = _shuffles(loader.sampler)
    if not shuffles:
        return None
    trained = _after_the_first_told(trained)
    if len({epoch.sampler_epoch for _, epoch in trained}) > 1:
        return None
    if any(epoch.told for _, epoch in trained) and len(trained) < _PASSES:
        return None
    for (number, epoch), (following, then) in pairwise(trained):
        if _went_as_far(epoch, then) and epoch.order == then.order is not None:
            return number, following
    return None


def _after_the_first_told(trained: list[tuple[int, Epoch]]) -> list[tuple[int, Epoch]]:
    """Without the first pass, where set_epoch was called behind it: it had the sampler's own 0."""
    is_before = len(trained) > 1 and trained[1][1].told and not trained[0][1].told
    return trained[1:] if is_before else trained


def _mixing(ranks: tuple[int, ...], loader: Loader, epoch: Epoch) -> Iterator[RankPlace]:
    """The line that shuffles, of a sampler of the user's own."""
    if loader.sampler is None and epoch.mixed_at is not None:
        yield RankPlace(ranks=ranks, place=epoch.mixed_at, doing="shuffles for this pass")


def _is_always_mixed_alike(loader: Loader, trained: list[Epoch]) -> bool:
    """Whether a sampler of the user's own shuffles, from one state in every pass that is known.

    Where some are apart it is told the epoch, and one is gone through once more, after a resume.
    """
    known = {(epoch.mixed, epoch.order) for epoch in trained if epoch.order is not None}
    is_long = loader.length is not None and loader.length > 2 * _FEW
    return is_long and len(known) == 1 and all(mixed for mixed, _ in known)


def _shuffles(sampler: Sampler) -> bool:
    return (
        sampler.shuffle
        and sampler.num_replicas > 1
        and sampler.length // sampler.num_replicas > _FEW
    )


def _went_as_far(epoch: Epoch, then: Epoch) -> bool:
    """To the end, or both until they were left after as many batches."""
    if epoch.ended and then.ended:
        return True
    left = not (epoch.ended or then.ended) and epoch.batches == then.batches
    return left and min(epoch.steps, then.steps) > _FEW


def _cure(loader: Loader) -> str:
    if loader.sampler is None:
        return "Tell what shuffles which epoch it is: seed + epoch, before every pass."
    return "Call sampler.set_epoch(epoch) at the start of every epoch."


def _why(loader: Loader) -> str:
    if loader.sampler is None:
        return "both were shuffled from the same state of a random generator."
    return "the sampler shuffles by seed and epoch, and was not told that the epoch is another."


def _told(loader: Loader, number: int) -> str:
    epoch = loader.epochs[number]
    if loader.sampler is None:
        return "the samples are chosen by a sampler of the user's own"
    if not epoch.told:
        return "set_epoch was never called"
    return f"set_epoch was called {epoch.told} times, last for epoch {epoch.sampler_epoch}"
