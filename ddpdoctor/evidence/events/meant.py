"""What the index of a dataset means: digests of the samples that came of some indices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import event
from ddpdoctor.evidence.model import RankEvidence


@dataclass(frozen=True, slots=True)
@checked
class Meant:
    """Of one pass over a loader."""

    loader: int
    epoch: int
    samples: Mapping[int, tuple[str, ...]]
    """By index: digests of the parts of the sample, as image and label."""


@event("meant")
def meant(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """One pass."""
    samples = {index: tuple(parts) for index, parts in given["samples"]}
    rank.of(Meant).append(Meant(given["loader"], given["epoch"], samples))
