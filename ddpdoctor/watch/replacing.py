"""Functions of others that are replaced for a while, and put back as they were."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any


class Replaced:
    """Those that are replaced now."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def put(self, holder: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Have an attribute be what `make` makes of it, until `undo`."""
        original = getattr(holder, name)
        ours = functools.wraps(original)(make(original))
        is_own = name in vars(holder) and not isinstance(holder, type)
        setattr(holder, name, ours)

        def undo() -> None:
            if vars(holder).get(name) is not ours:
                return
            if is_own:
                setattr(holder, name, original)
            else:
                _put_back(holder, name, original)

        self._undo.append(undo)

    def undo(self) -> None:
        """Put all of them back that nobody else has replaced since."""
        for undo in reversed(self._undo):
            undo()
        self._undo = []


def compiles() -> bool:
    """Whether torch.compile is at work: functions that are replaced would have it compile anew."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return dynamo is not None and bool(dynamo.counters["frames"])


def _put_back(holder: Any, name: str, original: Any) -> None:
    """Of a method that is inherited nothing may stay behind."""
    delattr(holder, name)
    if getattr(holder, name, None) is not original:
        setattr(holder, name, original)
