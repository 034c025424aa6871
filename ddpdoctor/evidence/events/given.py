"""Which samples a model was given in its first passes."""

from __future__ import annotations

from dataclasses import dataclass

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import record
from ddpdoctor.evidence.records import Place


@record("given", most=256)
@dataclass(frozen=True, slots=True)
@checked
class Given:
    """Of one pass that builds a graph."""

    wrapper: int
    step: int
    """Optimizer steps taken before."""
    time: float
    rows: tuple[str, ...]
    """Digests of its first samples."""
    place: Place | None
    """The line that calls the wrapper."""
    way: tuple[Place, ...] = ()
    """The user's frames that led to that line, outermost first."""
    whole: str = ""
    """Digest of all tensors that it is given, of the first passes; "" if they cannot be read."""
