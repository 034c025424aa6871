"""Optimizers that hold what has no gradient, and not what has one."""

from __future__ import annotations

from dataclasses import dataclass

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import record
from ddpdoctor.evidence.records import Place


@record("unheld", most=256)
@dataclass(frozen=True, slots=True)
@checked
class Unheld:
    """One look at an optimizer that is about to step; it lasts until the next."""

    optimizer: int
    wrapper: int
    step: int
    idle: int
    """Parameters of the optimizer that no wrapper holds and that have no gradient."""
    left: int
    """Parameters of the wrapper that have one, are of the same shapes, and in no optimizer."""
    names: tuple[str, ...]
    """Of some of these."""
    place: Place | None
