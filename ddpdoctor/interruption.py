"""Ctrl-C, which what is being imported may turn into an error of its own."""

from __future__ import annotations

import signal
from types import FrameType

_noted: list[int] = []


def heed() -> None:
    """From now on, have Ctrl-C raise KeyboardInterrupt, and be remembered."""
    signal.signal(signal.SIGINT, _interrupt)


def was_noted() -> bool:
    """Whether there was one."""
    return bool(_noted)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _noted.append(number)
    raise KeyboardInterrupt
