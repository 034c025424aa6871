"""What modules hold that are called while training, and that no DDP holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import record
from ddpdoctor.evidence.records import Place


@record("beside")
@dataclass(frozen=True, slots=True)
@checked
class Beside:
    """One of them, at the end of one window."""

    step: int
    """The optimizer step that the window came before."""
    number: int
    """In the order in which they were called in that window, from 0."""
    type: str
    """Its class."""
    shapes: str
    """Those of its parameters and buffers, in their order."""
    parameters: Mapping[str, str]
    """Digests by name."""
    buffers: Mapping[str, str]
    """The same, but for what torch's batch norms count for themselves."""
    few: tuple[tuple[float, ...], ...]
    """Some elements of each of these buffers."""
    feeds: bool
    """What it gave was given to a DDP as it was."""
    place: Place | None
    """The line that calls it."""
    changed_at: Place | None = None
    """The line that changed a parameter of it in place within the window."""
    way: tuple[Place, ...] = ()
    """The user's frames that led to that line, outermost first."""
