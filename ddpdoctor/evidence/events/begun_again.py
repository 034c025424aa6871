"""Orders that were gone through again and again within one pass over a loader."""

from __future__ import annotations

from dataclasses import dataclass

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import record
from ddpdoctor.evidence.records import Place


@record("begun_again")
@dataclass(frozen=True, slots=True)
@checked
class BegunAgain:
    """One pass that began anew twice, shuffled each time from the state of the first time."""

    loader: int
    """Which of the rank's."""
    number: int
    """Which pass over it."""
    batches: int
    """How many it had given by then."""
    place: Place
    """The line that shuffles."""
    way: tuple[Place, ...] = ()
