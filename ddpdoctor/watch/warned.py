"""Records what Python warned of: each line of source once."""

from __future__ import annotations

import functools
import warnings
from typing import Any

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log

_MOST = 100
_MESSAGE_LIMIT = 300


def install(log: Log) -> None:
    """Listen to the warnings that are about to be shown; they are shown as ever."""
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

    @functools.wraps(original)
    def show(message: Any) -> None:
        note(message)
        original(message)

    warnings._showwarnmsg = show  # type: ignore[attr-defined]
