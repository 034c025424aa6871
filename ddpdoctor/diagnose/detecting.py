"""How a detector makes itself known: by its file's being in `detectors/`, and by its precedence."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ddpdoctor.catalog import Finding
from ddpdoctor.diagnose.case import Case

Detect = Callable[[Case], Iterator[Finding]]
_known: dict[int, Detect] = {}


def detector(*, precedence: int) -> Callable[[Detect], Detect]:
    """Have a function be asked about every case, after those whose precedence is a lower number.

    What comes first may explain an incident, and who comes later does not see it: a chain of events
    before its links, the named before the general. Up to 199 what the launch did, up to 399 what
    ended a job or holds it, from 400 on what went wrong in silence. No two have the same number.
    """

    def register(detect: Detect) -> Detect:
        if precedence in _known:
            raise ValueError(f"two detectors have precedence {precedence}")
        _known[precedence] = detect
        return detect

    return register


def detectors() -> list[Detect]:
    """All of them, in their order."""
    return [_known[number] for number in sorted(_known)]
