"""Records what modules hold that are called while training, and that no DDP holds.

For the length of a few windows all calls of modules are listened to, by torch's own global hooks:
in all others nothing is.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ddpdoctor.watch.digests import Budget, digests, is_capturing, size
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import Frame, users_frame

_MODULES, _TENSORS = 8, 128
"""So many modules of a window, and so many tensors of each, are looked at."""


@dataclass
class _Called:
    module: weakref.ref[Any]
    place: Frame | None
    feeds: bool = False


class Beside:
    """The modules that were called in the window that is open, if one is."""

    def __init__(self, log: Log, budget: Budget) -> None:
        self.inside: Callable[[], bool] = lambda: False
        """Whether a forward pass of a wrapper is under way."""
        self._log, self._budget = log, budget
        self._called: dict[int, _Called] = {}
        self._given: dict[int, tuple[weakref.ref[Any], _Called]] = {}
        """Tensors that they gave, by identity."""
        self._handles: list[Any] = []

    @harmless
    def open(self) -> None:
        """Listen until `close`."""
        from torch.nn.modules import module

        self._handles = [
            module.register_module_forward_pre_hook(self._before),
            module.register_module_forward_hook(self._after),
        ]

    @harmless
    def fed(self, tensor: Any) -> None:
        """The model is given this."""
        found = self._given.get(id(tensor))
        if found is not None and found[0]() is tensor:
            found[1].feeds = True

    @harmless
    def close(self, step: int, held: Callable[[], set[int]]) -> None:
        """Write what they hold, but for the modules that wrappers hold; and listen no more."""
        if not self._handles:
            return
        for handle in self._handles:
            handle.remove()
        self._handles = []
        called, self._called, self._given = self._called, {}, {}
        for number, (each, module) in enumerate(_outermost(called, held())):
            named = [*module.named_parameters(), *module.named_buffers()][:_TENSORS]
            state = dict(named)
            if number >= _MODULES or is_capturing(state.values()):
                break
            if self._budget.take(size(state)):
                self._log.write(
                    "beside",
                    step=step,
                    number=number,
                    type=type(module).__qualname__,
                    state=digests(state),
                    feeds=each.feeds,
                    place=each.place,
                )

    @harmless
    def _before(self, module: Any, inputs: Any) -> None:
        if id(module) not in self._called and not self.inside():
            place = users_frame(sys._getframe(1))
            self._called[id(module)] = _Called(weakref.ref(module), place)

    @harmless
    def _after(self, module: Any, inputs: Any, output: Any) -> None:
        called = self._called.get(id(module))
        if called is not None and hasattr(output, "dtype"):
            self._given[id(output)] = weakref.ref(output), called


def _outermost(called: dict[int, _Called], held: set[int]) -> Iterator[tuple[_Called, Any]]:
    """Those that hold something, and that neither hold a wrapper nor are held by another."""
    inner: set[int] = set()
    for each in called.values():
        module = each.module()
        if module is None or id(module) in inner:
            continue
        parts = {id(part) for part in module.modules()}
        if parts & held:
            continue
        inner |= parts
        if any(True for _ in (*module.parameters(), *module.buffers())):
            yield each, module
