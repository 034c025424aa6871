"""The backward passes of a process in which several models reduce over one group."""

from __future__ import annotations

from dataclasses import dataclass

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import record
from ddpdoctor.evidence.records import Place


@record("backward", lasts=False, most=256)
@dataclass(frozen=True, slots=True)
@checked
class Backward:
    """One of them."""

    seq: int
    """Collectives that the group of the models had seen when it began."""
    way: tuple[Place, ...] = ()
    """The user's frames that lead to it, outermost first."""
