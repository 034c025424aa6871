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
    left: Mapping[str, list[float]] = field(default_factory=dict)
    """Some elements of gradients as the latest backward pass has left them, or clipping after it,
    before anything was reduced; or, where it reduces while it runs, as it would have left them."""
    scaled: float = 1.0
    """By what clip_grad_norm_ has multiplied gradients after they were reduced."""
    whole: str = ""
    """Digest of all gradients just then; empty if it was too much to read."""
    few: Mapping[str, list[float]] = field(default_factory=dict)
    """The same elements of those that it steps on."""
    factors: tuple[float, ...] = ()
    """By what the means over this rank's samples are multiplied in the loss; empty where there are
    other terms than means."""
    passes: int = 0
    """Backward passes since the step before."""
    talked: bool = False
    """Collectives were issued while the latest one ran."""
    rule: str = ""
    """The optimizer of torch's that it is."""
    rates: tuple[float, ...] = ()
    """The learning rate of each of its groups."""
    rates_so_far: str = ""
    """Digest of those of all its steps up to this one."""
