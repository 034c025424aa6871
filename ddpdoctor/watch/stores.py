"""Records what a script's own lines set in a store of torch's, and wait for there.

What torch itself keeps in a store, to have ranks meet, is not written down.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import is_users, users_frame

_MOST = 1000
"""So many calls are written down."""


def install(log: Log) -> None:
    """Wrap what sets and what waits, in the class that all stores are of."""
    from torch._C import _distributed_c10d

    store_type: Any = _distributed_c10d.Store
    written = 0

    def is_wanted(frame: Any) -> bool:
        nonlocal written
        written += (own := is_users(frame.f_code))
        return own and written <= _MOST

    @harmless
    def has_set(frame: Any, args: Any) -> None:
        if is_wanted(frame):
            log.write("key-set", key=str(args[1]), place=users_frame(frame))

    @harmless
    def waits(frame: Any, args: Any) -> bool:
        if wanted := is_wanted(frame):
            keys = [args[1]] if isinstance(args[1], str) else [*map(str, args[1])]
            log.write("key-awaited", keys=keys, place=users_frame(frame))
        return wanted

    def setting(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            has_set(sys._getframe(1), args)
            return result

        return call

    def waiting(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            is_noted = waits(sys._getframe(1), args)
            try:
                return original(*args, **kwargs)
            finally:
                if is_noted:
                    log.write("key-came")

        return call

    for name in ("set", "add", "append", "compare_set"):
        setattr(store_type, name, setting(getattr(store_type, name)))
    for name in ("get", "wait"):
        setattr(store_type, name, waiting(getattr(store_type, name)))
