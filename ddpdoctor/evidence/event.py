"""What an event is: its kind, whether it lasts, and how it changes what is known of a rank.

All three are said in one place, a file of `events/`, and nowhere else: the log asks here what it
must say again when it is begun anew, the reader asks what a line means. An event that only adds a
record is a dataclass under `record`; one that changes what was known is a function under `event`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from ddpdoctor.evidence.records import Place

if TYPE_CHECKING:
    from ddpdoctor.evidence.model import RankEvidence

    Apply = Callable[[RankEvidence, dict[str, Any], float], None]

R = TypeVar("R")
_PLACES = ("place", "members_place", "made_at", "mixed_at", "changed_at", "clipped_at")
_PATHS = ("stack", "places")


@dataclass(frozen=True, slots=True)
class Kind:
    """How events of one kind are taken in."""

    lasts: bool
    """A log that is begun anew says it again."""
    apply: Apply


KINDS: dict[str, Kind] = {}
"""By the name that stands in the log; filled by the files of `events/`."""
PASSING: set[type] = set()
"""The records of kinds that do not last."""


def event(kind: str, *, lasts: bool = True) -> Callable[[Apply], Apply]:
    """Have a function take in the events of a kind: it gets the rank, the fields and the time."""

    def register(apply: Apply) -> Apply:
        if kind in KINDS:
            raise ValueError(f"two say what {kind!r} is")
        KINDS[kind] = Kind(lasts, apply)
        return apply

    return register


def record(
    kind: str, *, into: str = "", lasts: bool = True, most: int = 0
) -> Callable[[type[R]], type[R]]:
    """Have each event of a kind become an instance of a dataclass, which `RankEvidence.of` gives.

    `into` names a list of RankEvidence that it is kept in instead. A field `time` or `begun` is the
    event's own time. Of more than `most` the latest are kept; 0 is all.
    """

    def register(cls: type[R]) -> type[R]:
        names = {each.name for each in fields(cls)}  # type: ignore[arg-type]
        clock = next((name for name in ("time", "begun") if name in names), "")

        def apply(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
            own = {clock: time} if clock else {}
            made = cls(**typed(given), **own)
            kept = getattr(rank, into) if into else rank.of(cls)
            kept.append(made)
            if most and len(kept) > most:
                del kept[:-most]

        event(kind, lasts=lasts)(apply)
        if not lasts:
            PASSING.add(cls)
        return cls

    return register


def typed(given: dict[str, Any]) -> dict[str, Any]:
    """Places and tuples as the dataclasses want them: JSON knows only lists."""
    return {key: value_of(key, value) for key, value in given.items()}


def value_of(key: str, value: Any) -> Any:
    """One field of an event as its dataclass wants it."""
    if key in _PLACES:
        return _place(*value) if value else None
    if key in _PATHS and isinstance(value, list):
        return tuple(_place(*frame) for frame in value)
    if isinstance(value, list):
        return tuple(tuple(item) if isinstance(item, list) else item for item in value)
    return value


@lru_cache(4096, typed=True)
def _place(file: str, line: int, function: str) -> Place:
    """Many ranks stand at few lines."""
    return Place(file, line, function)
