"""Lines that changed the parameters of a model after it was wrapped, before it was first used."""

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
