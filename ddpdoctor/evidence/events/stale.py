"""What workers that are kept between passes never learn of."""

from __future__ import annotations

from dataclasses import dataclass

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import record
from ddpdoctor.evidence.records import Place


@record("stale", most=64)
@dataclass(frozen=True, slots=True)
@checked
class Stale:
    """A number that the data set goes by was changed, and the workers have the one of before."""

    loader: int
    """Which of the rank's."""
    number: int
    """The pass that begins, from 1."""
    name: str
    was: str
    """When the workers were started."""
    now: str
    place: Place
    """The method that goes by it."""
