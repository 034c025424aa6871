"""Ctrl-C, which what is being imported may turn into an error of its own."""

from __future__ import annotations

import signal
import sys
from types import CodeType, FrameType

_noted: list[int] = []
_AT_FORK = ("_acquireLock", "_releaseLock", "_prepareFork", "_afterFork")
"""What the logging module does around a fork: an exception in there is printed, and forgotten."""
_MOMENT = 0.01
"""Seconds after which it is tried again."""


def heed() -> None:
    """From now on, have Ctrl-C raise KeyboardInterrupt, and be remembered."""
    signal.signal(signal.SIGINT, _interrupt)


def was_noted() -> bool:
    """Whether there was one."""
    return bool(_noted)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _noted.append(number)
    if _is_forgotten(frame):
        signal.signal(signal.SIGALRM, _interrupt)
        signal.setitimer(signal.ITIMER_REAL, _MOMENT)
    else:
        raise KeyboardInterrupt


def _is_forgotten(frame: FrameType | None) -> bool:
    hooks = (getattr(sys.modules.get("logging"), name, None) for name in _AT_FORK)
    codes: set[CodeType] = {hook.__code__ for hook in hooks if hook is not None}
    while frame is not None:
        if frame.f_code in codes:
            return True
        frame = frame.f_back
    return False
