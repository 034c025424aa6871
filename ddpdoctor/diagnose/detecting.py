"""How a detector makes itself known: by its file's being in `detectors/`, and by its precedence."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

from ddpdoctor.catalog import Finding
from ddpdoctor.diagnose.case import Case

Detect = Callable[[Case], Iterator[Finding]]
_known: dict[int, Detect] = {}


def detector(*, precedence: int, of_absence: bool = False) -> Callable[[Detect], Detect]:
    """Have a function be asked about every case, after those whose precedence is a lower number.

    What comes first may explain an incident, and who comes later does not see it: a chain of events
    before its links, the named before the general. Up to 199 what the launch did, up to 399 what
    ended a job or holds it, from 400 on what went wrong in silence. No two have the same number.
    One `of_absence` concludes from what a rank did not do: it is not asked where a log was cut
    short, as what is missing there may have been done.
    """

    def register(detect: Detect) -> Detect:
        if precedence in _known:
            raise ValueError(f"two detectors have precedence {precedence}")
        _known[precedence] = _where_all_was_written(detect) if of_absence else detect
        return detect

    return register


def _where_all_was_written(detect: Detect) -> Detect:
    @functools.wraps(detect)
    def ask(case: Case) -> Iterator[Finding]:
        return iter(()) if case.is_cut_short else detect(case)

    return ask


def detectors() -> list[Detect]:
    """All of them, in their order."""
    return [_known[number] for number in sorted(_known)]
