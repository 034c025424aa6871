"""Signals that end a command: none is lost, whatever was being done as it came.

What is being imported may turn Ctrl-C into an error of its own.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from types import CodeType, FrameType

Handler = Callable[[int, FrameType | None], None]
_noted: list[int] = []
_AT_FORK = ("_acquireLock", "_releaseLock", "_prepareFork", "_afterFork")
"""What the logging module does around a fork: an exception in there is printed, and forgotten."""
_MOMENT = 0.01
"""Seconds after which it is tried again."""


def heed() -> None:
    """From now on, have Ctrl-C raise KeyboardInterrupt, and be remembered."""
    signal.signal(signal.SIGINT, never_forgotten(_interrupt))


def never_forgotten(handler: Handler) -> Handler:
    """A handler that raises, called a moment later where what it raises would be forgotten."""

    def call(number: int, frame: FrameType | None) -> None:
        if not _is_forgotten(frame):
            handler(number, frame)
            return
        signal.signal(signal.SIGALRM, lambda _, later: call(number, later))
        signal.setitimer(signal.ITIMER_REAL, _MOMENT)

    return call


def was_noted() -> bool:
    """Whether there was one."""
    return bool(_noted)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _noted.append(number)
    raise KeyboardInterrupt


def _is_forgotten(frame: FrameType | None) -> bool:
    hooks = (getattr(sys.modules.get("logging"), name, None) for name in _AT_FORK)
    codes: set[CodeType] = {hook.__code__ for hook in hooks if hook is not None}
    while frame is not None:
        if frame.f_code in codes:
            return True
        frame = frame.f_back
    return False
