"""With which running statistics a wrapped model was evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import record
from ddpdoctor.evidence.records import Place


@record("rested", most=64)
@dataclass(frozen=True, slots=True)
@checked
class Rested:
    """A DDP that sends no buffers goes back to training from evaluation mode."""

    wrapper: int
    since: float
    """When it was put into evaluation mode."""
    digests: Mapping[str, str]
    """Of what its batch norms hold, by name."""
    place: Place | None
    """The line that puts it back."""
    time: float = 0.0
