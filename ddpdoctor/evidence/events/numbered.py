"""How words were numbered for whose numbers a wrapped model has rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import event, typed
from ddpdoctor.evidence.model import RankEvidence
from ddpdoctor.evidence.records import Place


@dataclass(frozen=True, slots=True)
@checked
class Numbering:
    """One dictionary of words, each with a number of its own."""

    place: Place | None
    """Where the model was wrapped, or the dataset made."""
    name: str
    rows: str
    """The parameter that has a row for each."""
    words: str
    """Digest of the words, in whatever order."""
    order: str
    """Digest of the words in the order of their numbers."""
    first: tuple[str, ...]
    """Those with the lowest numbers."""
    dealt: bool = False
    """It is a dataset's."""


@event("numbered")
def numbered(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """All that were there as one model was wrapped, or a dataset first gone over."""
    place = Place(*given["place"]) if given["place"] else None
    for row in given["found"]:
        numbering = Numbering(place=place, dealt=given.get("dealt", False), **typed(row))
        rank.of(Numbering).append(numbering)
