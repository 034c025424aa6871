"""Collectives whose result was let go before anybody can have read it."""

from __future__ import annotations

from dataclasses import dataclass

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import record
from ddpdoctor.evidence.records import Place


@record("lost", most=256)
@dataclass(frozen=True, slots=True)
@checked
class Lost:
    """One of them."""

    group: str
    seq: int
    op: str
    place: Place | None
    time: float
