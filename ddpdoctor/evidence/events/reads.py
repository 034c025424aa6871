"""Numbers that a script has read off tensors outside of training."""

from __future__ import annotations

from dataclasses import dataclass

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import record
from ddpdoctor.evidence.records import Place


@record("read")
@dataclass(frozen=True, slots=True)
@checked
class Read:
    """One of them."""

    number: int
    """Of the calls at this line, from 1."""
    value: str
    place: Place | None
    time: float
    way: tuple[Place, ...] = ()
    step: int = 0
    """Optimizer steps taken before."""
    aside: bool = False
    """It was formatted, for people to read, or has a graph: nothing is decided by that."""
    many: bool = False
    """It was an array of several numbers: the value is the sum of its first ones."""
