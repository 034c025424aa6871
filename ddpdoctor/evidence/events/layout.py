"""How the module of each wrapper was laid out when it was wrapped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import event, typed
from ddpdoctor.evidence.model import RankEvidence
from ddpdoctor.evidence.records import Place


@dataclass(frozen=True, slots=True)
@checked
class Layout:
    """Of one wrapper."""

    wrapper: int
    buffers: tuple[str, ...]
    """Names in the order of their registration."""
    makers: tuple[Place | None, ...]
    """Of each, the user's constructor that registers it."""
    writers: tuple[Place | None, ...]
    """Of each, the user's line that puts something into it."""
    shared: str
    """The memory of its parameters, if other processes have it too."""


@event("layout")
def layout(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """One wrapper."""
    makers = tuple(Place(*each) if each else None for each in given.pop("makers"))
    writers = tuple(Place(*each) if each else None for each in given.pop("writers", ()))
    rank.of(Layout).append(Layout(makers=makers, writers=writers, **typed(given)))
