"""Samples that accelerate repeats to fill up the last batch, gathered with the others."""

from __future__ import annotations

from dataclasses import dataclass

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import record
from ddpdoctor.evidence.records import Place


@record("surplus", most=64)
@dataclass(frozen=True, slots=True)
@checked
class Surplus:
    """A line that has gathered some."""

    place: Place | None
    gathered: int
    """Rows that all ranks gave together."""
    samples: int
    """So many of them are samples of the data set; what follows are its first ones again."""
    time: float
