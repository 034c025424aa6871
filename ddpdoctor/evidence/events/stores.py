"""What a script sets in a store of torch's, and waits for there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import event, record
from ddpdoctor.evidence.model import RankEvidence
from ddpdoctor.evidence.records import Place


@record("key-set", most=1024)
@dataclass(frozen=True, slots=True)
@checked
class KeySet:
    """A key that was given a value."""

    key: str
    place: Place | None


@record("key-awaited")
@dataclass(frozen=True, slots=True)
@checked
class KeyAwaited:
    """Keys that the rank waits for now."""

    keys: tuple[str, ...]
    place: Place | None
    time: float


@event("key-came")
def key_came(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """It waits no more: they came, or it has given up."""
    rank.of(KeyAwaited).clear()
