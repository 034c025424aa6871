"""What ranks went backward from."""

from __future__ import annotations

from dataclasses import dataclass

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import record
from ddpdoctor.evidence.records import Place


@record("loss", lasts=False, most=256)
@dataclass(frozen=True, slots=True)
@checked
class Loss:
    """The one that the first backward before an optimizer step began with, unscaled."""

    step: int
    """The optimizer step that follows, from 1."""
    value: float | None
    """None where it was no number, or beyond all bounds."""
    place: Place | None
    factors: tuple[float, ...] = ()
    """By what the means over this rank's samples are multiplied in it; empty where there are other
    terms than means."""
    whole: float = 1.0
    """By what all of it was multiplied in the end."""
    divided: tuple[float, ...] = ()
    """By which numbers all of it was divided in the end, the last first."""
    time: float = 0.0
