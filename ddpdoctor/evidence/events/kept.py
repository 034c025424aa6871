"""Tensors that hold weights which a model had before its wrap, and that the rank then changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import record
from ddpdoctor.evidence.records import Place


@record("kept", lasts=False)
@dataclass(frozen=True, slots=True)
@checked
class Kept:
    """Copies of a model's weights from before the wrap, tensor by tensor."""

    wrapper: int
    step: int
    """The optimizer step before which they were looked at."""
    was: Mapping[str, str]
    """By the parameter that each is of: digest until the first step."""
    now: Mapping[str, str]
    """Another one."""
    place: Place | None
    """The line of the wrap; of a twin, the one that copied it."""
    twin: int = 0
    """Of a copy of what the wrapped module is a copy of, or of itself, made after the wrap: its
    number, from 1. `was` is of the first step at which it was there."""
    of_model: bool = False
    """It is a copy of the wrapped module."""
    updates: int = 0
    """Of an AveragedModel: so often it was brought up to date, and where."""
    changed_at: Place | None = None
