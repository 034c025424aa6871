"""What stands in place of others' functions for a while, and is gone before anyone reads these.

torch.compile, torch.fx and TorchScript do not call a function, they read it: one of ours would have
them fail, compile anew, or keep it for good. So all that is in place is taken away when they begin.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any

from ddpdoctor.watch.aside import is_traced, skip
from ddpdoctor.watch.harmless import harmless


class Replaced:
    """Functions that are replaced now, and hooks that are registered."""

    def __init__(self) -> None:
        self.is_on = False
        self._undo: list[Callable[[], None]] = []
        self._made: dict[tuple[int, str, Any], tuple[Any, Callable[[], None]]] = {}
        """By holder, name and original: windows come again, and all that stands in costs most."""

    def begin(self) -> bool:
        """Whether something may be put in place from now on, until `undo`."""
        if self.is_on or compiles():
            return False
        _know_who_reads()
        self.is_on = True
        _on.append(self)
        return True

    def put(self, holder: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Have an attribute be what `make` makes of it: once, and the same again after `undo`."""
        original = getattr(holder, name)
        key = id(holder), name, original
        if (made := self._made.get(key)) is None:
            made = self._made[key] = self._standing_in(holder, name, original, make(original))
        ours, undo = made
        setattr(holder, name, ours)
        self._undo.append(undo)

    def _standing_in(
        self, holder: Any, name: str, original: Any, listening: Any
    ) -> tuple[Any, Callable[[], None]]:
        """What stands in for the original, and what puts that back."""

        @functools.wraps(original)
        def ours(*args: Any, **kwargs: Any) -> Any:
            call = listening if self.is_on and not is_traced() else original
            return call(*args, **kwargs)

        is_own = name in vars(holder) and not isinstance(holder, type)

        def undo() -> None:
            if vars(holder).get(name) is not ours:
                return
            if is_own:
                setattr(holder, name, original)
            else:
                _put_back(holder, name, original)

        return ours, undo

    def hold(self, hook: Any) -> None:
        """Have a hook be removed with the rest, by its handle."""
        self._undo.append(hook.remove)

    def undo(self) -> None:
        """Take away all that nobody else has replaced since."""
        if self.is_on:
            self.is_on = False
            _on.remove(self)
            for undo in reversed(self._undo):
                undo()
            self._undo = []


_on: list[Replaced] = []
"""Those with something in place."""


def compiles() -> bool:
    """Whether torch.compile was handed anything: what is replaced would have it compile anew."""
    frames, utils = (sys.modules.get(f"torch._dynamo.{name}") for name in ("eval_frame", "utils"))
    if frames is None or utils is None:
        return False
    return bool(utils.counters["frames"]) or any(map(callable, frames.cached_backends.values()))


@harmless
def _undo_all() -> None:
    for each in reversed(_on):
        each.undo()


@functools.cache
def _know_who_reads() -> None:
    """Have whoever is about to read functions find them as they were, and a fork be without ours.

    torch.compile is handed a module, torch.fx begins with an empty graph, TorchScript with the
    source or the names of arguments. Which functions make a tensor, a device remembers when it is
    first asked: it is now.
    """
    from torch._dynamo.eval_frame import OptimizeContext
    from torch.fx.graph import Graph
    from torch.jit import _trace, frontend
    from torch.utils import _device

    _device._device_constructors()
    beginnings: list[tuple[Any, str]] = [
        (OptimizeContext, "__init__"),
        (Graph, "__init__"),
        (frontend, "parse_def"),
        (_trace, "get_callable_argument_names"),
    ]
    originals = [getattr(holder, name) for holder, name in beginnings]
    for (holder, name), original in zip(beginnings, originals, strict=True):
        setattr(holder, name, _undoing(original))
    os.register_at_fork(after_in_child=_undo_all)


def _undoing(original: Any) -> Any:
    @functools.wraps(original)
    def begins(*args: Any, **kwargs: Any) -> Any:
        _undo_all()
        return original(*args, **kwargs)

    skip(begins)
    return begins


def _put_back(holder: Any, name: str, original: Any) -> None:
    """Of a method that is inherited nothing may stay behind."""
    delattr(holder, name)
    if getattr(holder, name, None) is not original:
        setattr(holder, name, original)
