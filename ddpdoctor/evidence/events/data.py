"""How the data was dealt out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ddpdoctor.evidence.event import event, record, typed
from ddpdoctor.evidence.model import RankEvidence
from ddpdoctor.evidence.records import Epoch, Loader, Place, Sampler

record("sampler", into="samplers")(Sampler)


@event("loader")
def loader(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """A loader that is iterated for the first time."""
    if given.pop("number") == len(rank.loaders):
        sampler = given.pop("sampler")
        listings = {name: tuple(digests) for name, digests in given.pop("listings").items()}
        elements = given.pop("elements", {})
        deals = given.pop("deals", {})
        made = Loader(
            elements={name: tuple(digests) for name, digests in elements.items()},
            **typed(given),
            sampler=Sampler(**typed(sampler)) if sampler else None,
            listings=listings,
            deals={name: (number, Place(*at)) for name, (number, *at) in deals.items()},
        )
        rank.loaders.append(made)


@event("epoch")
def epoch(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """A pass over a loader begins."""
    passes, number = rank.loaders[given.pop("loader")].epochs, given.pop("number")
    passes[number] = Epoch(begun=time, **typed(given))


@event("drawn")
def drawn(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """How far a pass has come."""
    passes, number = rank.loaders[given.pop("loader")].epochs, given.pop("number")
    ended = time if given.pop("ended") else None
    passes[number] = replace(passes[number], ended=ended, **typed(given))
