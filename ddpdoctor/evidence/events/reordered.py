"""What was put into a random order, again and again, once the training had begun."""

from __future__ import annotations

from dataclasses import dataclass

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import record
from ddpdoctor.evidence.records import Place


@record("reordered", most=256)
@dataclass(frozen=True, slots=True)
@checked
class Reordered:
    """One call, before the training or in it."""

    by: str
    """random, numpy.random or torch: whose generator it draws from."""
    content: str
    """Of numbers, which they were before; else empty."""
    state: str
    """Digest of the generator before it."""
    step: int
    place: Place
    way: tuple[Place, ...] = ()
