"""Brings the times of several hosts to one clock, as well as their wall clocks agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_TIMES = ("t", "since", "begun", "ended")
"""The fields of events that are times."""


@dataclass(frozen=True, slots=True)
class Clock:
    """CLOCK_MONOTONIC of one boot of one host."""

    boot: str
    zero: float | None
    """What the wall clock shows at its zero; None where nobody wrote it down."""

    @classmethod
    def of(cls, start: dict[str, Any]) -> Clock:
        """The clock of the rank that began with this event."""
        wall = start.get("wall")
        return cls(start["boot"], None if wall is None else wall - start["t"])

    def ahead_of(self, other: Clock) -> float | None:
        """Seconds to add to its times to have them on the other clock; None if nobody knows."""
        if self.boot == other.boot:
            return 0.0
        return None if self.zero is None or other.zero is None else self.zero - other.zero


def shift(event: Any, seconds: float) -> None:
    """Add so much to all times of an event."""
    if isinstance(event, list):
        for each in event:
            shift(each, seconds)
    elif isinstance(event, dict):
        for key, value in event.items():
            if key in _TIMES and isinstance(value, float | int):
                event[key] = value + seconds
            else:
                shift(value, seconds)
