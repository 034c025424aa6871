"""Random states that the training code has set."""

from __future__ import annotations

from dataclasses import dataclass

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.event import record
from ddpdoctor.evidence.records import Place


@record("random-state")
@dataclass(frozen=True, slots=True)
@checked
class RandomState:
    """A call of `torch.set_rng_state`, or, after one, of `torch.manual_seed`."""

    before: str
    """The seed that the generator went by until then."""
    now: str
    """Digest of its state after it; "" where more calls may have come that are not written."""
    place: Place | None
    time: float
    way: tuple[Place, ...] = ()
    given_back: bool = False
    """Whether it is the state that this process was in when it was seeded, not long before."""
