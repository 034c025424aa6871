"""Tensors that a rank goes on to change, and that began as weights which DDP then replaced."""

from __future__ import annotations

from dataclasses import dataclass

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import record
from ddpdoctor.evidence.records import Place


@record("kept")
@dataclass(frozen=True, slots=True)
@checked
class Kept:
    """A copy of a model's weights from before the wrap, tensor by tensor."""

    wrapper: int
    names: tuple[str, ...]
    """The parameters that they were copied from."""
    place: Place | None
    """The line of the wrap."""
