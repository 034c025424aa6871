"""Buffers as a rank held them when DDP was about to overwrite them by those of rank 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import record
from ddpdoctor.evidence.records import Place


@record("buffers", lasts=False)
@dataclass(frozen=True, slots=True)
@checked
class Buffers:
    """Before one forward pass."""

    wrapper: int
    step: int
    """Optimizer steps taken before it."""
    digests: Mapping[str, str]
    """By name; those of batch norms, which differ on every rank, are left out."""
    place: Place | None
    """The line of the pass."""
    sent: bool = True
    """Whether DDP makes them alike in this pass."""
