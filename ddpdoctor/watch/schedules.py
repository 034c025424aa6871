"""Records learning-rate schedules: where they are made, and how far they have counted.

Nothing is added to their steps: what one has counted is read off it when the rates come to zero.
"""

from __future__ import annotations

import functools
import sys
import weakref
from typing import Any

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import users_frame

_MOST = 64


class Schedules:
    """Those that were made since `listen`; none is kept alive."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._made: list[weakref.ref[Any]] = []

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
            frame = sys._getframe(2)
            self._log.write(
                "schedule",
                total=int(getattr(scheduler, "total_steps", None) or 0),
                place=users_frame(frame),
                way=self._log.way(frame),
            )
