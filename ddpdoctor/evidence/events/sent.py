"""Passes that are no training, in which DDP sends a model's buffers to the other ranks."""

from __future__ import annotations

from dataclasses import dataclass

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import record
from ddpdoctor.evidence.records import Place


@record("sent", most=256)
@dataclass(frozen=True, slots=True)
@checked
class Sent:
    """One of the first of a model, or one of ever rarer ones after them."""

    wrapper: int
    group: str
    seq: int
    """The number in its group of the broadcast that C++ issues for it."""
    place: Place | None
    way: tuple[Place, ...] = ()
