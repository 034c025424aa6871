"""Learning-rate schedules, as they were made and as far as they came."""

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


@record("schedule-step")
@dataclass(frozen=True, slots=True)
@checked
class ScheduleStep:
    """The first step of one, after that of its making."""

    place: Place | None
    """The line that steps it."""
    way: tuple[Place, ...] = ()
    """The user's frames that led there, outermost first."""


@record("schedule-end")
@dataclass(frozen=True, slots=True)
@checked
class ScheduleEnd:
    """How far one has come when the job leaves its process group, or ends."""

    counted: int
    """The steps that it has counted."""
    steps: int
    """Those that its optimizer has taken."""
    plans: tuple[int, ...]
    """Numbers that it goes by, as far as it tells them: for how many steps it was made is one."""
    place: Place | None
    """The line that made it."""
    way: tuple[Place, ...] = ()
    """The user's frames that led there, outermost first."""
