"""Lists that were put into a random order, and from what state of the generator."""

from __future__ import annotations

from dataclasses import dataclass

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import record
from ddpdoctor.evidence.records import Place


@record("shuffled")
@dataclass(frozen=True, slots=True)
@checked
class Shuffled:
    """One call."""

    by: str
    """random.shuffle, numpy.random.permutation, torch.randperm, ..."""
    length: int
    """0 where a generator of the script's own was made, by which it may shuffle later."""
    state: str
    """Digest of the generator before it."""
    place: Place | None
    way: tuple[Place, ...] = ()
