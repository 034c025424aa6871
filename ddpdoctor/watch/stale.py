"""Records numbers of a data set that were changed after its workers had been started for good.

Persistent workers hold the copy of the data set that they were started with. A number that its own
methods read as they give samples, and never set, the epoch mostly, is changed in this process
alone: a worker that counts by itself may know it.
"""

from __future__ import annotations

import dis
import weakref
from typing import Any

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import Frame, is_users

_GIVING = ("__iter__", "__getitem__", "__getitems__")
_MOST = 8
"""Passes of a loader that are told of."""


class Stale:
    """The loaders of this process whose workers are kept."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._begun: weakref.WeakKeyDictionary[Any, dict[str, int | float]] = (
            weakref.WeakKeyDictionary()
        )

    @harmless
    def begins(self, loader: Any, number: int, passes: int) -> None:
        """A pass over this loader begins, be it the first."""
        if not loader.persistent_workers or passes > _MOST:
            return
        dataset = loader.dataset
        read = _read(type(dataset))
        own = {k: v for k, v in vars(dataset).items() if k in read and type(v) in (int, float)}
        was = self._begun.setdefault(loader, own)
        for name in was.keys() & own.keys():
            if own[name] != was[name]:
                self._log.write(
                    "stale",
                    loader=number,
                    number=passes,
                    name=name,
                    was=str(was[name]),
                    now=str(own[name]),
                    place=read[name],
                )


def _read(kind: type) -> dict[str, Frame]:
    """The attributes that the methods of the user's own which give samples read, and do not set."""
    found: dict[str, Frame] = {}
    put: set[str] = set()
    for method in _GIVING:
        code = getattr(getattr(kind, method, None), "__code__", None)
        if code is not None and is_users(code):
            place = code.co_filename, code.co_firstlineno, code.co_qualname
            found.update(dict.fromkeys(code.co_names, place))
            steps = dis.get_instructions(code)
            put.update(str(each.argval) for each in steps if each.opname == "STORE_ATTR")
    return {name: place for name, place in found.items() if name not in put}
