"""Handles of collectives that were let go while nobody had waited for them."""

from __future__ import annotations

from dataclasses import dataclass

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import record
from ddpdoctor.evidence.records import Place


@record("dropped", most=256)
@dataclass(frozen=True, slots=True)
@checked
class Dropped:
    """One of them."""

    group: str
    seq: int
    op: str
    place: Place | None
    time: float
