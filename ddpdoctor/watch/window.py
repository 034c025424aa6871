"""A few windows between steps, in which calls are listened to that else nothing listens to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ddpdoctor.watch import datasets
from ddpdoctor.watch.beside import Beside
from ddpdoctor.watch.digests import Budget
from ddpdoctor.watch.draws import Draws
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.means import Means
from ddpdoctor.watch.replacing import Replaced
from ddpdoctor.watch.shares import Shares

_LAST = 64
"""No window begins after this step."""


class Window:
    """The one that is open, if one is: it ends where somebody reads what functions there are."""

    def __init__(self, log: Log, budget: Budget, inside: Callable[[], bool]) -> None:
        self.replaced = Replaced()
        self._draws = Draws(log, inside)
        self._means = Means(log, inside)
        self._shares = Shares(log, inside)
        self._beside = Beside(log, budget, inside)

    @harmless
    def open(self, step: int) -> None:
        """Listen until `close`, which comes before this step."""
        if step <= _LAST and self.replaced.begin():
            for each in (self._draws, self._means, self._shares, self._beside):
                each.listen(self.replaced)

    @harmless
    def fed(self, inputs: Any, kwargs: Any) -> None:
        """A model is given these samples."""
        self._draws.fed(datasets.rows((inputs, kwargs)), list(datasets.tensors((inputs, kwargs))))
        self._beside.fed(datasets.first((inputs, kwargs)))

    @harmless
    def close(self, step: int, held: Callable[[], set[int]]) -> None:
        """Write what was found, unless it has ended before; `held` are the modules of wrappers."""
        if self.replaced.is_on:
            self.replaced.undo()
            self._draws.write(step)
            self._means.write(step)
            self._shares.write(step)
            self._beside.write(step, held())
