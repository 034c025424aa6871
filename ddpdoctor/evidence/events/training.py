"""How models were wrapped and trained."""

from __future__ import annotations

from typing import Any

from ddpdoctor.evidence.event import event, record, typed
from ddpdoctor.evidence.model import RankEvidence
from ddpdoctor.evidence.records import (
    ModelCopy,
    Place,
    Plateau,
    Sample,
    Seed,
    StateLoad,
    Training,
    Wrapper,
)

record("wrapper", into="wrappers")(Wrapper)
record("copy", into="copies")(ModelCopy)
record("seed", into="seeds")(Seed)
record("plateau", into="plateaus")(Plateau)
record("state-load", into="state_loads")(StateLoad)


@event("gradients")
def gradients(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """Which parameters of a wrapper were without a gradient."""
    wrapper = rank.wrappers[given["wrapper"]]
    wrapper.without_gradient = tuple(given["without_gradient"])
    wrapper.unreferenced = tuple(given["unreferenced"])
    places = (Place(*frame) for frame in given["registered"])
    wrapper.registered = tuple(dict.fromkeys(places))
    wrapper.uses = tuple(Place(*frame) for frame in given.get("uses", ()))
    if (frozen := given.get("frozen")) is not None:
        wrapper.frozen = tuple(frozen)
    wrapper.freezes = tuple(Place(*frame) for frame in given.get("freezes", ()))


@event("training", lasts=False)
def training(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """How an optimizer's steps have used a wrapper until now."""
    lines = {name: Place(*frame) for name, frame in given.pop("places").items()}
    now = Training(places=lines, **typed(given))
    rank.training[now.wrapper, now.optimizer] = now


@event("sample", lasts=False)
def sample(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """Digests of what the rank held before a step."""
    few = {name: tuple(row) for name, row in given.pop("few", {}).items()}
    rank.samples.append(Sample(**typed(given), few=few, time=time))
