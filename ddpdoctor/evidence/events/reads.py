"""Numbers that a script has read off tensors outside of training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import event, typed
from ddpdoctor.evidence.model import Place, RankEvidence


@dataclass(frozen=True, slots=True)
@checked
class Read:
    """One of them."""

    number: int
    """Of the calls at this line, from 1."""
    value: str
    place: Place | None
    time: float
    way: tuple[Place, ...] = ()


@event("read")
def read(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """One number."""
    number = given.pop("way", None)
    way = rank.ways.get(number, ()) if number is not None else ()
    rank.of(Read).append(Read(time=time, way=way, **typed(given)))
