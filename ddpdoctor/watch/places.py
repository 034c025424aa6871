"""Which frames of a stack are the user's own."""

from __future__ import annotations

import gc
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator
from functools import lru_cache, wraps
from pathlib import Path
from types import CodeType, FrameType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

Frame = tuple[str, int, str]
"""File, line and function: `evidence.Place` as it is written to the log."""

_LIBRARIES = tuple(
    f"{Path(path).resolve()}/"
    for path in {
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("purelib"),
        sysconfig.get_path("platlib"),
    }
)
_INSTALLED = ("/site-packages/", "/dist-packages/")
"""Also a person's own (pip install --user), Debian's, and those that PYTHONPATH names."""
_CELL = "<ipython-input-"
"""How IPython's own shell calls a cell; the kernels of notebooks name a file, which need not be."""
_OURSELVES = f"{Path(__file__).resolve().parent.parent}/"
_FORKED = f"{_OURSELVES}launch/rank.py"
_BEGINS = "/multiprocessing/process.py"
_WATCH = f"{Path(__file__).resolve().parent}/"
_NOT_USERS = (_OURSELVES, *_LIBRARIES)
_MOST = 20_000
_PATIENTS = (f"{_OURSELVES}reproducers/", f"{_OURSELVES}stack/")


_known: dict[int, tuple[CodeType, bool]] = {}
"""By identity: to hash a code object takes longer than all the rest. Kept, so none is mistaken."""


def is_users(code: CodeType) -> bool:
    """Whether this code is neither the standard library, nor an installed package, nor the doctor.

    The reproducers and the training stack are patients, wherever they are installed.
    """
    known = _known.get(id(code))
    if known is None:
        if len(_known) > _MOST:
            _known.clear()
        known = _known[id(code)] = (code, is_users_file(code.co_filename))
    return known[1]


@lru_cache(maxsize=4096)
def is_users_file(file: str) -> bool:
    """The same of all code of a file."""
    if file.startswith("<"):
        return file.startswith(_CELL)
    file = os.path.realpath(file)
    if file.startswith(_PATIENTS):
        return True
    return not file.startswith(_NOT_USERS) and not any(each in file for each in _INSTALLED)


def is_ours(file: str) -> bool:
    """Whether it is a file of the watch."""
    return file.startswith(_WATCH)


def outwards(frame: FrameType | None) -> Iterator[FrameType]:
    """This frame and its callers, innermost first, up to where it began to be a rank's."""
    while frame is not None:
        yield frame
        name = frame.f_code.co_name
        if name == "live" and frame.f_code.co_filename == _FORKED:
            return  # its callers are those of the program that the rank was forked from
        if name == "_bootstrap" and frame.f_code.co_filename.endswith(_BEGINS):
            return  # so are these
        frame = frame.f_back


def looks_at_others(function: Callable[P, T]) -> Callable[P, T]:
    """Have a function that follows another thread's frames not collect garbage meanwhile.

    Python 3.11 makes a frame an object when it is first asked for, and may collect then: what is
    collected can let the other thread go on and leave the very frame (as CPython issue 106883).
    """
    if sys.version_info >= (3, 12):
        return function

    @wraps(function)
    def look(*args: P.args, **kwargs: P.kwargs) -> T:
        collects = gc.isenabled()
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            if collects:
                gc.enable()

    return look


def as_frame(frame: FrameType) -> Frame:
    """A live frame as it is written down; between two lines it has none, and gets its first."""
    line = frame.f_lineno or frame.f_code.co_firstlineno
    return (frame.f_code.co_filename, line, frame.f_code.co_qualname)


def users_frame(frame: FrameType | None = None) -> Frame | None:
    """The innermost frame that is the user's own, from `frame` or from the caller outwards."""
    each: FrameType | None = frame or sys._getframe(1)
    while each is not None and not is_users(each.f_code):
        each = each.f_back
    return None if each is None else as_frame(each)


def users_place(stack: list[Frame]) -> Frame | None:
    """The innermost line that is the user's own, of a stack as it is written down."""
    return next((each for each in reversed(stack) if is_users_file(each[0])), None)
