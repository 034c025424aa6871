"""Numbers that the training code has drawn between two optimizer steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import event, typed
from ddpdoctor.evidence.model import RankEvidence
from ddpdoctor.evidence.records import Place


@dataclass(frozen=True, slots=True)
@checked
class Draw:
    """One call of a function that draws."""

    step: int
    """The optimizer step that it came before."""
    number: int
    """Its number in the window, from 0."""
    rows: int | None
    """Samples that the model was given in that window."""
    place: Place
    by: str
    """The function: randn, normal_, randint, ..."""
    shape: tuple[int, ...]
    state: str
    """Digest of the generator before it."""
    inside: bool
    """Within the forward pass of a wrapper."""
    exchanged: int = 0
    """Numbers that the rank has given to others in that window, for them to have as they are."""
    kept: bool = True
    """Somebody still held it when the model was given its samples; or was given it."""


@event("draws")
def draws(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """All draws of one window."""
    for number, row in enumerate(given["drawn"]):
        window = {name: given[name] for name in ("step", "rows", "exchanged")}
        rank.of(Draw).append(Draw(number=number, **window, **typed(row)))
