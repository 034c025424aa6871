"""Lines that changed the parameters of a model after it was wrapped, while it was not in use."""

from __future__ import annotations

from dataclasses import dataclass

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import record
from ddpdoctor.evidence.records import Place


@record("altered", most=64)
@dataclass(frozen=True, slots=True)
@checked
class Altered:
    """What one line changed, in place."""

    wrapper: int
    names: tuple[str, ...]
    """Parameters, as the module within the wrapper names them."""
    place: Place
    step: int = 0
    """After which step of this process that was; 0 before the model was first used."""
    way: tuple[Place, ...] = ()
