"""Records what Python warned of: each line of source once."""

from __future__ import annotations

import functools
import warnings
from typing import Any

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import is_ours, users_frame

_MOST = 100
_MESSAGE_LIMIT = 300


def install(log: Log) -> None:
    """Listen to the warnings that are about to be shown; they are shown as ever.

    One that is to name who has called names us where a function of ours stands in between: it gets
    the line that it would have named.
    """
    original: Any = warnings._showwarnmsg  # type: ignore[attr-defined]
    known: set[tuple[str, int]] = set()

    @harmless
    def note(message: Any) -> None:
        place = (message.filename, message.lineno)
        if place not in known and len(known) < _MOST:
            known.add(place)
            log.write(
                "warning",
                category=message.category.__name__,
                message=str(message.message)[:_MESSAGE_LIMIT],
                place=[*place, ""],
            )

    @harmless
    def put_right(message: Any) -> None:
        if is_ours(message.filename) and (place := users_frame()) is not None:
            message.filename, message.lineno, _ = place

    @functools.wraps(original)
    def show(message: Any) -> None:
        put_right(message)
        note(message)
        original(message)

    warnings._showwarnmsg = show  # type: ignore[attr-defined]
