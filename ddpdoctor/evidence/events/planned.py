"""Learning-rate schedules as they were made."""

from __future__ import annotations

from dataclasses import dataclass

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import record
from ddpdoctor.evidence.records import Place


@record("schedule")
@dataclass(frozen=True, slots=True)
@checked
class Schedule:
    """One of torch's, or of a class that is derived from them."""

    total: int
    """The steps that it was made for; 0 where it does not say."""
    place: Place | None
    """The line that made it."""
    way: tuple[Place, ...] = ()
    """The user's frames that led there, outermost first."""
