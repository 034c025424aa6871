"""DDP204: a sampler of the user's own takes a part by rank of an order that each rank has made.

Seen: as the first pass begins, its code shuffles as much as there is, from a state of a generator
that is another one on each rank; it reads the rank and how many there are; and what a rank is given
is, that many times, no more than what was shuffled. A part that is shuffled after it was taken is
not so long, and who goes through all of it is given more. Where the code communicates, the order of
one rank may be that of all.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose import loaders
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Epoch, Loader, Place, RankEvidence, named
from ddpdoctor.evidence.events.shuffled import Shuffled

_FEW = 8
"""Of fewer it says little how many are given."""


@detector(precedence=438)
def detect(case: Case) -> Iterator[Finding]:
    """One finding for each line that shuffles."""
    told: set[Place] = set()
    for kin in loaders.training(case.evidence):
        place = _apart(case, kin)
        if place is None or place in told:
            continue
        told.add(place)
        ranks = tuple(sorted(kin))
        yield Finding(
            code="DDP204",
            title="sampler-seed-per-rank",
            severity="warning",
            certainty="evidence",
            ranks=ranks,
            places=(
                RankPlace(ranks=ranks, place=place, doing="shuffles, in no common order"),
                *loaders.dealers(kin),
                *loaders.places(kin, "built the loader"),
            ),
            cause=f"{named(ranks)} each take a part of an order of their own, as what shuffles "
            "starts from another state on each: the parts overlap, and leave samples out.",
            cure=Cure(text="Shuffle with a generator that is seeded alike on all ranks."),
        )


def _apart(case: Case, kin: loaders.Kin) -> Place | None:
    """The line that shuffles on each rank for itself what is then dealt out by rank."""
    if len(kin) < 2 or any(each.sampler for each in kin.values()):
        return None
    if len({each.identity for each in kin.values()}) > 1 or not _deals_by_rank(kin):
        return None
    first = {rank: loaders.first_epoch(loader) for rank, loader in kin.items()}
    begun = {each.mixed_at for each in first.values()}
    states = [each.mixed[:1] for each in first.values()]
    place = begun.pop()
    if begun or place is None or () in states or len({*states}) < len(states):
        return None
    ranks = case.evidence.ranks
    if any(_talks_there(ranks[n], place) for n in kin):
        return None
    whole = (_is_of_all(ranks[n], kin[n], first[n], place, len(kin)) for n in kin)
    return place if all(whole) else None


def _deals_by_rank(kin: loaders.Kin) -> bool:
    """Whether the sampler's code reads which rank this is, and how many there are."""
    ranks = sorted(kin)
    rows = [
        [kin[rank].deals[name][0] for rank in ranks if name in kin[rank].deals]
        for name in kin[ranks[0]].deals
    ]
    return ranks in rows and [len(ranks)] * len(ranks) in rows


def _talks_there(rank: RankEvidence, place: Place) -> bool:
    """Whether the code that shuffles, or what it calls, is known to communicate."""
    code = place.file, place.function
    return any((at.file, at.function) == code for call in rank.collectives for at in call.way)


def _is_of_all(rank: RankEvidence, loader: Loader, epoch: Epoch, place: Place, world: int) -> bool:
    """Whether what was shuffled is all, be it samples or batches, and a part of it was given."""
    orders = [each for each in rank.of(Shuffled) if each.place == place and each.length]
    lengths = [each.length for each in orders[: len(epoch.mixed)]]
    if not lengths or not epoch.rows or not epoch.batches:
        return False
    given = epoch.rows * epoch.batches
    if lengths[0] == loader.length and given >= _FEW:
        return given * world <= sum(lengths)
    # A list of batches, or of the rank's own samples: they are told apart by how many were given.
    of_batches = world * epoch.batches <= lengths[0] < world * (epoch.batches + 1)
    of_own = given - epoch.rows < lengths[0] < given + epoch.rows
    return epoch.ended is not None and epoch.batches > 2 and of_batches and not of_own
