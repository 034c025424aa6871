"""Of how many terms the losses of a few steps were means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import event, typed
from ddpdoctor.evidence.model import RankEvidence
from ddpdoctor.evidence.records import Place


@dataclass(frozen=True, slots=True)
@checked
class Mean:
    """One mean, or quotient, that gave a number with a graph."""

    step: int
    """The optimizer step that it came before."""
    since: float
    """When the step before was taken."""
    time: float
    place: Place
    by: str
    """The function: mean, __truediv__, cross_entropy, ..."""
    terms: int
    samples: int = 0
    """Of the batch that was drawn last; 0 where that is not known."""


@event("means")
def means(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """All of one window."""
    for row in given["found"]:
        rank.of(Mean).append(Mean(given["step"], given["since"], time, **typed(row)))
