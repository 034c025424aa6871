"""What ranks train without a DDP, where they may share the gradients by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import record
from ddpdoctor.evidence.records import Place


@record("by-hand", most=256)
@dataclass(frozen=True, slots=True)
@checked
class ByHand:
    """What an optimizer is about to step on, in a process that has built no DDP."""

    optimizer: int
    step: int
    """From 1."""
    parameters: Mapping[str, str]
    """Digests by name, of those that have a gradient."""
    gradients: Mapping[str, str]
    place: Place | None
    """The line that steps."""
    clipped: Mapping[str, str] = field(default_factory=dict)
    """Digests of what clip_grad_norm_ has left of those gradients that it was given, since the step
    before."""
    clip_bit: bool = False
    """Whether their norm was over the limit."""
    clipped_at: Place | None = None
