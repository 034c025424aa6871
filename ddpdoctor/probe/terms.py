"""How much time a probe is given."""

from __future__ import annotations

from dataclasses import dataclass

_PATIENCE = 20.0


@dataclass(frozen=True)
class Terms:
    """What the user says of time, and when that was."""

    seconds: float
    """To measure, about."""
    patience: float | None
    """Seconds that one rank waits for another, where the user says so."""
    begun: float
    """When the user's command was, by the clock: a slow start leaves less to measure."""

    @property
    def wait(self) -> float:
        """Seconds that one rank waits for another."""
        return self.patience or max(_PATIENCE, self.seconds)
