"""By what the losses of a few steps were divided, and what was summed up over the ranks there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import event, typed
from ddpdoctor.evidence.model import RankEvidence
from ddpdoctor.evidence.records import Place


@dataclass(frozen=True, slots=True)
@checked
class Share:
    """One quotient that the loss is, or that is a term of it."""

    step: int
    """The optimizer step that it came before."""
    place: Place
    by: float
    sums: tuple[tuple[float, ...], ...]
    """What this rank gave to each sum over all ranks, between that step and the one before."""


@event("shares")
def shares(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """All of one window."""
    window = typed({"step": given["step"], "sums": given["sums"]})
    for row in given["found"]:
        rank.of(Share).append(Share(**window, **typed(row)))
