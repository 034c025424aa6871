"""What torch's flight recorder holds: DDP's gradients and buffers, which no Python code issues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import event, typed
from ddpdoctor.evidence.model import RankEvidence

_MOST = 256
"""So many are remembered, the latest."""


@dataclass(frozen=True, slots=True)
@checked
class Recorded:
    """One collective; those that Python code has issued may be among them."""

    group: str
    seq: int
    op: str
    begun: float


@event("recorded", lasts=False)
def recorded(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """The latest that had not been told."""
    kept = rank.of(Recorded)
    kept += (Recorded(**typed(row)) for row in given["rows"])
    del kept[:-_MOST]
