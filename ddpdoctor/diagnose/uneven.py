"""Why ranks have unlike numbers of batches, as far as they have shown it.

A remainder: how many samples they hold differs by less than there are ranks, and none is held by
two. Samples that each has chosen: the ranks' choices of one set overlap, and are of unlike size.
Shares: they are of unlike size, however that came about. An order of each: they hold as many, and
have put them in order from states that differ before they made batches of them. A remainder of
batches: the order was one, each goes by its own rank, and the numbers differ by less than there are
ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ddpdoctor.catalog import RankPlace
from ddpdoctor.diagnose import loaders, shuffles
from ddpdoctor.evidence import RankEvidence

Counts = dict[int, int]
_JOIN = ", or train inside Join."


@dataclass(frozen=True, slots=True)
class Reason:
    """What was seen, in words, what to do, and lines."""

    told: str
    cure: str
    places: tuple[RankPlace, ...] = ()


def reason(ranks: list[RankEvidence], kin: loaders.Kin, batches: Counts) -> Reason | None:
    """The first that fits."""
    ways: tuple[Callable[[], Reason | None], ...] = (
        lambda: _remainder(kin, len(ranks)),
        lambda: _chosen(ranks, kin),
        lambda: _shares(kin),
        lambda: _orders(ranks, kin),
        lambda: _rest(ranks, kin, batches),
    )
    return next((found for way in ways if (found := way()) is not None), None)


def _lengths(kin: loaders.Kin) -> Counts:
    """How many samples each rank goes through; empty where that is not known."""
    found = {rank: loader.length for rank, loader in kin.items()}
    is_known = all(not each.iterable and each.sampler is None for each in kin.values())
    return (
        {rank: of for rank, of in found.items() if of} if is_known and all(found.values()) else {}
    )


def _share_members(kin: loaders.Kin) -> bool:
    """Whether two ranks are seen to hold some of the same samples."""
    sets = [frozenset(loader.members or ()) for loader in kin.values()]
    return sum(map(len, sets)) > len(frozenset().union(*sets))


def _remainder(kin: loaders.Kin, world: int) -> Reason | None:
    lengths = _lengths(kin)
    if not lengths or not 0 < max(lengths.values()) - min(lengths.values()) < world:
        return None
    if _share_members(kin):
        return None
    return Reason(
        f"{sum(lengths.values())} samples are dealt out with a remainder: {_told(lengths)}.",
        "Leave the remainder out, or repeat some samples, so that all ranks hold as many "
        "(DistributedSampler does)" + _JOIN,
    )


def _chosen(ranks: list[RankEvidence], kin: loaders.Kin) -> Reason | None:
    lengths = _lengths(kin)
    identities = {loader.identity for loader in kin.values()}
    if len(set(lengths.values())) < 2 or len(identities) > 1 or not _share_members(kin):
        return None
    return Reason(
        f"Each has chosen samples of its own from one set, some of them the same: "
        f"{_told(lengths)}.",
        "Choose with a generator of one seed on all ranks, and deal out equally many" + _JOIN,
        tuple(shuffles.seeded_apart(ranks)),
    )


def _shares(kin: loaders.Kin) -> Reason | None:
    lengths = _lengths(kin)
    if len(set(lengths.values())) < 2:
        return None
    return Reason(
        f"They hold shares of unlike size: {_told(lengths)}.",
        "Deal out equally many samples to all ranks (DistributedSampler does)" + _JOIN,
    )


def _orders(ranks: list[RankEvidence], kin: loaders.Kin) -> Reason | None:
    if len(set(_lengths(kin).values())) != 1 or all(loader.plain for loader in kin.values()):
        return None
    places = _mixed_apart(kin) or tuple(shuffles.apart(ranks))
    if not places:
        return None
    return Reason(
        "They hold as many samples, and each has put them in an order of its own before it made "
        "batches of them: no seed was shared.",
        "Shuffle with one seed on all ranks, make batches of that one order, and deal out equally "
        "many" + _JOIN,
        places,
    )


def _mixed_apart(kin: loaders.Kin) -> tuple[RankPlace, ...]:
    """The line that shuffles for a pass, where it did so from other states on each rank."""
    for number in sorted(set.intersection(*({*each.epochs} for each in kin.values()))):
        of = {rank: loader.epochs[number] for rank, loader in kin.items()}
        places = {epoch.mixed_at for epoch in of.values()}
        if len({epoch.mixed for epoch in of.values()}) > 1 and len(places) == 1:
            numbers = tuple(sorted(of))
            doing = "shuffles, in no common order"
            return (RankPlace(ranks=numbers, place=places.pop(), doing=doing),)
    return ()


def _rest(ranks: list[RankEvidence], kin: loaders.Kin, batches: Counts) -> Reason | None:
    is_dealt = any(True for _ in loaders.dealers(kin))
    if not is_dealt or max(batches.values()) - min(batches.values()) >= len(ranks):
        return None
    if len(set(_lengths(kin).values())) != 1 or not _is_one_order(kin):
        return None
    return Reason(
        f"The order is one on all ranks, and the parts of it that they are dealt, with a remainder "
        f"or for what each leaves out of its own, are not as long: {_told(batches, 'batches')}.",
        "Leave out before dealing out what is not to be used, and what is left over, or repeat "
        "some, so that all ranks have as many" + _JOIN,
    )


def _is_one_order(kin: loaders.Kin) -> bool:
    """Whether each pass was shuffled from the same states on all ranks."""
    numbers = set.intersection(*({*each.epochs} for each in kin.values()))
    return bool(numbers) and all(
        len({loader.epochs[number].mixed for loader in kin.values()}) == 1 for number in numbers
    )


def _told(counts: Counts, what: str = "samples") -> str:
    few = sorted(counts.items())[:4]
    more = ", ..." if len(counts) > len(few) else ""
    return ", ".join(f"rank {rank} has {count} {what}" for rank, count in few) + more
