"""The same loader on every rank: what detectors of the data family compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ddpdoctor.catalog import RankPlace
from ddpdoctor.evidence import Collective, Epoch, Evidence, Loader, Place, RankEvidence

Kin = dict[int, Loader]
"""One loader of the program, as each rank has it."""


def kin(evidence: Evidence) -> Iterator[Kin]:
    """The loaders of all ranks: the n-th that a line built belongs to the n-th on every other."""
    found: dict[tuple[Place | None, int], Kin] = {}
    for rank in evidence.ranks:
        if not rank.loaders:
            continue
        built: Counter[Place | None] = Counter()
        for loader in rank.loaders:
            found.setdefault((loader.place, built[loader.place]), {})[rank.rank] = loader
            built[loader.place] += 1
    yield from found.values()


def training(evidence: Evidence) -> Iterator[Kin]:
    """Those that feed the training of one model on every rank.

    Where there are groups that do not span the world, ranks may share data on purpose (tensor or
    pipeline parallelism): nothing is said then.
    """
    world = len(evidence.ranks)
    if world < 2 or not all(rank.wrappers for rank in evidence.ranks):
        return
    if any(len(g.ranks) != world for rank in evidence.ranks for g in rank.groups.values()):
        return
    for each in kin(evidence):
        if len(each) == world and all(loader.trains for loader in each.values()):
            yield each


def first_epoch(loader: Loader) -> Epoch:
    """The first pass that was written down."""
    return loader.epochs[min(loader.epochs)]


def latest_epoch(loader: Loader) -> Epoch:
    """The latest pass that was written down."""
    return loader.epochs[max(loader.epochs)]


def is_split_later(kin: Kin) -> bool:
    """Whether the model is given a rank's part of each batch: all ranks may draw the same then."""
    epochs = [epoch for loader in kin.values() for epoch in loader.epochs.values()]
    return any(
        epoch.rows and epoch.fed and abs(epoch.fed * len(kin) - epoch.rows) < len(kin)
        for epoch in epochs
    )


def told_after(rank: RankEvidence, epoch: Epoch) -> list[Collective]:
    """What the user's code communicates from a whole pass to the next pass over anything."""
    if epoch.ended is None:
        return []
    begins = (e.begun for each in rank.loaders for e in each.epochs.values())
    until = min((begun for begun in begins if begun > epoch.ended), default=float("inf"))
    return [c for c in rank.collectives if c.place is not None and epoch.begun < c.begun < until]


def places(kin: Kin, built: str, *, sampler: str = "") -> tuple[RankPlace, ...]:
    """Where the sampler was built (if it is to be named), the loader, and where it is iterated."""
    ranks = tuple(sorted(kin))
    loader = kin[ranks[0]]
    found = []
    if sampler and loader.sampler is not None and loader.sampler.place != loader.place:
        found.append(RankPlace(ranks=ranks, place=loader.sampler.place, doing=sampler))
    found.append(RankPlace(ranks=ranks, place=loader.place, doing=built))
    if loader.epochs:
        place = first_epoch(loader).place
        found.append(RankPlace(ranks=ranks, place=place, doing="iterates it"))
    return tuple(found)


def dealers(kin: Kin, *, by_rank: bool = True) -> Iterator[RankPlace]:
    """Where the user's own sampler reads a number that is another one on each rank.

    Without those that are the rank itself, unless `by_rank`.
    """
    ranks = tuple(sorted(kin))
    for name, (_, place) in kin[ranks[0]].deals.items():
        numbers = [kin[rank].deals[name][0] for rank in ranks if name in kin[rank].deals]
        if len(set(numbers)) == len(ranks) and (by_rank or numbers != [*ranks]):
            yield RankPlace(ranks=ranks, place=place, doing=f"goes by its own {name}")


def are_dealt_out(kin: Kin) -> bool:
    """Whether what torch or another library has for it deals indices out among just these ranks.

    Such a sampler holds how many ranks there are, and which one this is.
    """
    if all(each.sampler is not None for each in kin.values()):
        return all(each.sampler and each.sampler.num_replicas == len(kin) for each in kin.values())
    held = [kin[rank].shared_by for rank in sorted(kin)]
    names = set.intersection(*map(set, held))
    numbers = [[each[name] for each in held] for name in names]
    return [*sorted(kin)] in numbers and [len(kin)] * len(kin) in numbers


def makers(kin: Kin) -> Iterator[RankPlace]:
    """The user's constructor of its dataset; of a stream, what gives its samples."""
    ranks = tuple(sorted(kin))
    loader = kin[ranks[0]]
    if loader.made_at is not None:
        doing = "gives the samples" if loader.iterable else "makes the dataset"
        yield RankPlace(ranks=ranks, place=loader.made_at, doing=doing)
