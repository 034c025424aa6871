"""Records exceptions, with all frames and everything they were raised from.

The one that ends a rank is written when its interpreter begins to exit. What passes out of a
backward, a collective, DDP or a loader is written at once: a launcher may end the process before it
has ended itself, and a trainer may catch it and exit with a code alone.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import sys
import threading
import traceback
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from types import CodeType
from typing import Any

from ddpdoctor.watch.aside import skip
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import Frame, as_frame, is_users, is_users_file, outwards

_MESSAGE_LIMIT = 4000
_USERS = 32
_LINE = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


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
        tell_end(log)

    _before_atexit(exiting)
    _in_children(tell)
    _around_backward(log)
    _around_exit(log)
    _around_telling(log)


def tell_end(log: Log, error: BaseException | None = None) -> None:
    """Write down that the process begins to exit, and what ends it, if that is not told yet."""
    if error is not None:
        _note(log, error)
    log.write("exiting", steps=log.steps)
    log.exiting = True


def passing(log: Log, error: BaseException, out_of: str) -> None:
    """Write down an exception that leaves one of the places where ranks depend on each other.

    To be called by the wrapper that it leaves, whose own frame nobody else is to read.
    """
    if not (log.exiting or getattr(error, "_ddpdoctor", False)):
        _mark(error)
        _note_passing(log, error, out_of)
    hide(error)


@harmless
def hide(error: BaseException) -> None:
    """Take our frames from its traceback: a bare `raise` adds none where it was caught."""
    trace = error.__traceback__
    while trace is not None and _is_ours(trace.tb_frame.f_code):
        trace = trace.tb_next
    error.__traceback__ = trace


@harmless
def _mark(error: Any) -> None:
    """Each is written once, at the innermost of the places that it leaves."""
    error._ddpdoctor = True


@harmless
def _note_passing(log: Log, error: BaseException, out_of: str) -> None:
    told = describe(error)
    # What it passes next: the traceback knows only what it has left.
    above = [frame for frame in outwards(sys._getframe(2)) if frame.f_code.co_filename != __file__]
    outer = [as_frame(frame) for frame in above if not _is_ours(frame.f_code)][::-1]
    told["frames"] = [*outer, *told["frames"]]
    told["user"] = [frame for frame in told["frames"] if is_users_file(frame[0])]
    told["place"] = told["place"] or (told["user"][-1] if told["user"] else None)
    log.write("thrown", exception=told, out_of=out_of)


@harmless
def _around_backward(log: Log) -> None:
    """All ways to go backward end in one function of torch's."""
    from torch import autograd
    from torch.autograd import graph

    original: Any = graph._engine_run_backward

    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        except Exception as error:
            passing(log, error, "backward")
            raise

    graph._engine_run_backward = run
    autograd._engine_run_backward = run  # type: ignore[attr-defined]
    skip(run)


@harmless
def _around_telling(log: Log) -> None:
    """Whoever catches what ended the script's own code, and sends it elsewhere, puts it in words.

    So do Ray's workers: the process goes on, and is ended from outside.
    """
    original: Any = traceback.TracebackException.__init__

    @functools.wraps(original)
    def init(self: Any, exc_type: Any, exc_value: Any, *args: Any, **kwargs: Any) -> None:
        original(self, exc_type, exc_value, *args, **kwargs)
        if log.is_open and not log.exiting and isinstance(exc_value, Exception):
            _note_left(log, exc_value)

    traceback.TracebackException.__init__ = init  # type: ignore[method-assign]


@harmless
def _note_left(log: Log, error: BaseException) -> None:
    """If it has left all of the user's code that trains."""
    if threading.get_ident() not in (log.trainer, threading.main_thread().ident):
        return
    if any(is_users(frame.f_code) for frame in outwards(sys._getframe(2))):
        return
    if any(is_users(frame.f_code) for frame, _ in traceback.walk_tb(error.__traceback__)):
        passing(log, error, "the script")


@harmless
def _around_exit(log: Log) -> None:
    """Who exits with a code tells nobody why: the line, and the exception it was handling, do."""

    def around(module: Any, name: str) -> None:
        original = getattr(module, name)

        @functools.wraps(original)
        def leave(code: Any = None) -> Any:
            if code not in (None, 0) and log.is_open:
                passing(log, sys.exc_info()[1] or SystemExit(code), "exit")
            original(code)

        setattr(module, name, leave)

    around(sys, "exit")
    around(os, "_exit")


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
                hide(error)
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
    frames: list[tuple[CodeType | None, Frame]] = [
        (frame.f_code, (frame.f_code.co_filename, line, frame.f_code.co_qualname))
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    users = [place for code, place in frames if code is not None and is_users(code)]
    worker = _of_worker(str(error))
    reader = users[-1] if worker and users else None
    beyond = [*worker, *_of_source(error)]
    users += [place for place in beyond if is_users_file(place[0])]
    frames += [(None, place) for place in beyond]
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return {
        "type": type(error).__name__,
        "message": str(error)[:_MESSAGE_LIMIT],
        "frames": [place for _, place in frames],
        "place": users[-1] if users else None,
        "user": users[-_USERS:],
        "reader": reader,
        "cause": describe(cause) if cause is not None else None,
    }


def _of_worker(message: str) -> list[Frame]:
    """The lines of a loader's worker: they come with its exception, as text."""
    _, found, text = message.partition("Original Traceback (most recent call last):")
    return (
        [(file, int(line), function) for file, line, function in _LINE.findall(text)]
        if found
        else []
    )


def _of_source(error: BaseException) -> list[Frame]:
    """The line that Python could not read: no frame has come to it."""
    if not isinstance(error, SyntaxError) or not error.filename or not error.lineno:
        return []
    return [(error.filename, error.lineno, "<module>")]


def _is_ours(code: CodeType) -> bool:
    return "/ddpdoctor/watch/" in code.co_filename
