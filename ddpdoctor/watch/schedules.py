"""Records learning-rate schedules: where they are made, and how far they have counted.

Of their steps the first one is looked at, by whom it is taken; what one has counted is read off it
when the rates come to zero.
"""

from __future__ import annotations

import functools
import sys
import weakref
from typing import Any

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import Frame, users_frame

_MOST = 64
_LENGTHS = ("total_steps", "T_max", "total_iters")
_LONG = 16
"""A schedule of fewer steps is none of steps, but of epochs."""


class Schedules:
    """Those that were made since `listen`; none is kept alive."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._made: list[weakref.ref[Any]] = []
        self._places: list[tuple[Frame | None, int | None]] = []
        """Of each, the line that made it and the way there."""
        self._unstepped: set[int] = set()
        """Those that nobody has stepped since they were made, by their identity."""

    def listen(self) -> None:
        """Wrap the construction of torch's."""
        from torch.optim.lr_scheduler import LRScheduler

        scheduler_type: Any = LRScheduler
        original = scheduler_type.__init__
        note = harmless(self._note)

        @functools.wraps(original)
        def construct(scheduler: Any, *args: Any, **kwargs: Any) -> None:
            original(scheduler, *args, **kwargs)
            note(scheduler)

        scheduler_type.__init__ = construct
        self._around_step(scheduler_type)

    def _around_step(self, scheduler_type: Any) -> None:
        original, unstepped = scheduler_type.step, self._unstepped
        note = harmless(self._note_step)

        @functools.wraps(original)
        def step(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            if id(scheduler) in unstepped:
                note(scheduler)
            return original(scheduler, *args, **kwargs)

        scheduler_type.step = step

    def _note_step(self, scheduler: Any) -> None:
        self._unstepped.discard(id(scheduler))
        frame = sys._getframe(2)
        place, way = users_frame(frame), self._log.way(frame)
        self._log.write("schedule-step", place=place, way=way)

    @harmless
    def counted(self, optimizer: Any) -> int:
        """How many steps the schedules of an optimizer have counted: the one that is furthest."""
        alive = [made for each in self._made if (made := each()) is not None]
        # An optimizer may be wrapped, as accelerate does it: the groups are the same.
        own = [each for each in alive if each.optimizer.param_groups is optimizer.param_groups]
        return max((int(each.last_epoch) for each in own), default=0)

    def _note(self, scheduler: Any) -> None:
        if len(self._made) < _MOST:
            self._made.append(weakref.ref(scheduler))
            self._unstepped.add(id(scheduler))
            frame = sys._getframe(2)
            place, way = users_frame(frame), self._log.way(frame)
            self._places.append((place, way))
            self._log.write(
                "schedule",
                total=int(getattr(scheduler, "total_steps", None) or 0),
                place=place,
                way=way,
            )

    @harmless
    def finish(self, steps: dict[int, int]) -> None:
        """Write how far each has come; `steps` are those of optimizers, by their groups' id."""
        for reference, (place, way) in zip(self._made, self._places, strict=True):
            scheduler = reference()
            if scheduler is None:
                continue
            taken = steps.get(id(scheduler.optimizer.param_groups), 0)
            if taken and (plans := _plans(scheduler)):
                self._log.write(
                    "schedule-end",
                    counted=int(scheduler.last_epoch),
                    steps=taken,
                    plans=plans,
                    place=place,
                    way=way,
                )


def _plans(scheduler: Any) -> list[int]:
    """The whole numbers that it was given, or that its functions hold; none of these is called."""
    found = [getattr(scheduler, name, None) for name in _LENGTHS]
    for function in getattr(scheduler, "lr_lambdas", ()):
        if isinstance(function, functools.partial):
            found += [*function.args, *function.keywords.values()]
            continue
        for cell in getattr(function, "__closure__", None) or ():
            try:
                found.append(cell.cell_contents)
            except ValueError:  # it is not filled yet
                continue
    return [each for each in found if type(each) is int and each >= _LONG][:_MOST]
