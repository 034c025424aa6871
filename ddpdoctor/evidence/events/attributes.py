"""Numbers that modules in a wrapper hold as plain attributes, of which DDP knows nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import record
from ddpdoctor.evidence.records import Place


@record("attributes", lasts=False)
@dataclass(frozen=True, slots=True)
@checked
class Attributes:
    """Before one optimizer step."""

    wrapper: int
    step: int
    digests: Mapping[str, str]
    """By name."""
    places: tuple[Place, ...]
    """By each of these, where the forward of the module begins that holds it."""
