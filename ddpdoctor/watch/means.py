"""Records how many terms a loss is a mean of, in a few windows between steps.

A rank divides by its own count, and DDP weighs all ranks alike. Seen are the means and quotients of
the user's own lines that give one number with a graph, and those of torch's losses: of cross
entropy the targets that are not ignored.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import Frame, users_frame
from ddpdoctor.watch.replacing import Replaced

_QUOTIENTS = ("__truediv__", "__itruediv__", "div")
_TARGETED = ("cross_entropy", "nll_loss")
_MOST = 16
"""Means that are written of one window."""


class Means:
    """The means of the window that is open, if one is."""

    def __init__(self, log: Log, inside: Callable[[], bool]) -> None:
        self._log, self._inside = log, inside
        """`inside`: whether a forward pass of a wrapper is under way."""
        self._since = 0.0
        self._found: list[dict[str, Any]] = []

    def listen(self, replaced: Replaced) -> None:
        """A window begins."""
        from torch import Tensor
        from torch.nn import functional

        self._since, self._found = time.monotonic(), []
        replaced.put(Tensor, "mean", self._listening("mean", _of_all))
        for name in _QUOTIENTS:
            replaced.put(Tensor, name, self._listening(name, _divisor))
        for name in _TARGETED:
            replaced.put(functional, name, self._listening(name, _targets, also_inside=True))

    def write(self, step: int) -> None:
        """What was found."""
        if self._found:
            self._log.write("means", step=step, since=self._since, found=self._found)

    def _listening(
        self, name: str, count: Callable[..., int], *, also_inside: bool = False
    ) -> Callable[[Any], Any]:
        def make(original: Any) -> Any:
            def mean(*args: Any, **kwargs: Any) -> Any:
                result = original(*args, **kwargs)
                place = users_frame(sys._getframe(1))
                if place is not None and len(self._found) < _MOST:
                    note(place, result, args, kwargs)
                return result

            return mean

        @harmless
        def note(place: Frame, result: Any, args: Any, kwargs: Any) -> None:
            if result.dim() or not result.requires_grad or (self._inside() and not also_inside):
                return
            if (terms := count(*args, **kwargs)) > 0:
                samples = self._log.samples
                self._found.append({"place": place, "by": name, "terms": terms, "samples": samples})

        return make


def _of_all(tensor: Any, *args: Any, **kwargs: Any) -> int:
    return int(tensor.numel())


def _divisor(tensor: Any, other: Any, **kwargs: Any) -> int:
    """A whole number without a graph; 0 for any other, and of a sum of nothing."""
    if tensor.dim() or getattr(other, "requires_grad", False) or not float(tensor.detach()):
        return 0
    value = float(other)
    return int(value) if value == int(value) else 0


def _targets(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    **kwargs: Any,
) -> int:
    if reduction != "mean" or weight is not None or target.is_floating_point():
        return 0
    return int((target != ignore_index).sum())
