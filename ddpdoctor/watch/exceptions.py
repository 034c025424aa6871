"""Records the exception that ends a rank, with all frames and everything it was raised from."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import is_users

_MESSAGE_LIMIT = 4000


def install(log: Log, before_writing: Callable[[BaseException], object]) -> None:
    """Chain into `sys.excepthook`; `before_writing` may add evidence while the state stands."""
    original = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        before_writing(error)
        _note(log, error)
        original(kind, error, trace)

    sys.excepthook = hook


@harmless
def _note(log: Log, error: BaseException) -> None:
    log.write("exception", exception=describe(error))


def describe(error: BaseException) -> dict[str, Any]:
    """The exception as it is written down, with the one it was raised from or while handling."""
    frames = [
        (frame.f_code, (frame.f_code.co_filename, line, frame.f_code.co_qualname))
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    users = [place for code, place in frames if is_users(code)]
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return {
        "type": type(error).__name__,
        "message": str(error)[:_MESSAGE_LIMIT],
        "frames": [place for _, place in frames],
        "place": users[-1] if users else None,
        "cause": describe(cause) if cause is not None else None,
    }
