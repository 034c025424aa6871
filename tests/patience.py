"""A bound that means the same on a busy machine as on one that has nothing else to do."""

from __future__ import annotations

import time
from collections.abc import Callable

ENDLESS = 600
"""Seconds that a command takes only if it hangs, on however busy a machine."""
_PAUSE = 0.1
_WORK = 0.005
_LEAST = 1 / 6


def within(seconds: float, condition: Callable[[], object]) -> bool:
    """Whether it comes true in so many seconds of a machine that does nothing else.

    Where others have the cores, a second counts for as much as this process gets of one when it
    asks, but for no less than a sixth.
    """
    while not condition():
        if seconds <= 0:
            return False
        began = time.monotonic()
        time.sleep(_PAUSE)
        seconds -= (time.monotonic() - began) * max(_share(), _LEAST)
    return True


def _share() -> float:
    """Of a core: what this process gets of it now."""
    asked, had = time.monotonic(), time.thread_time()
    while time.thread_time() - had < _WORK:
        pass
    return _WORK / (time.monotonic() - asked)
