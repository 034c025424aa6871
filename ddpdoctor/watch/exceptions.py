"""Records the exception that ends a rank, with all frames and everything it was raised from."""

from __future__ import annotations

import functools
import importlib
import sys
import threading
import traceback
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import is_users

_MESSAGE_LIMIT = 4000


def install(log: Log, before_writing: Callable[[BaseException], object]) -> None:
    """Write down the exception that ends the process, when its interpreter begins to exit.

    Not by an excepthook: the job may have one of its own. `before_writing` may add evidence while
    the state stands.
    """

    def tell(error: BaseException) -> None:
        if not log.exiting:
            before_writing(error)
            _note(log, error)

    def exiting() -> None:
        error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        if error is not None:
            tell(error)
        log.write("exiting")
        log.exiting = True

    _before_atexit(exiting)
    _in_children(tell)


@harmless
def _before_atexit(function: Callable[[], None]) -> None:
    # Private, but the one hook that runs before all of atexit's, in every kind of process.
    threading._register_atexit(function)  # type: ignore[attr-defined]


@harmless
def _in_children(tell: Callable[[BaseException], None]) -> None:
    """Listen to what targets raise: multiprocessing and mp.spawn catch it."""
    # Not `import torch.multiprocessing.spawn`, which is a function of the same name.
    spawn: Any = importlib.import_module("torch.multiprocessing.spawn")

    def listening(function: Any) -> Any:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except (Exception, KeyboardInterrupt) as error:
                tell(error)
                raise

        return call

    BaseProcess.run = listening(BaseProcess.run)  # type: ignore[method-assign]
    original = spawn._wrap

    @functools.wraps(original)
    def wrap(fn: Any, *args: Any, **kwargs: Any) -> Any:
        return original(listening(fn), *args, **kwargs)

    spawn._wrap = wrap


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
