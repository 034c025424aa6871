"""With which weights a wrapped model is evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import record
from ddpdoctor.evidence.records import Place


@record("evaluated", most=64)
@dataclass(frozen=True, slots=True)
@checked
class Evaluated:
    """The first pass in evaluation mode, or without a graph, after a step."""

    wrapper: int
    step: int
    """Steps that this process has taken."""
    parameters: Mapping[str, str]
    """Digests."""
    place: Place | None = None
