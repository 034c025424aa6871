"""Which frames of a stack are the user's own."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType

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
_OURSELVES = f"{Path(__file__).resolve().parent.parent}/"
_PATIENTS = (f"{_OURSELVES}reproducers/", f"{_OURSELVES}stack/")


@lru_cache(maxsize=4096)
def is_users(code: CodeType) -> bool:
    """Whether this code is neither the standard library, nor an installed package, nor the doctor.

    The reproducers and the training stack are patients, wherever they are installed.
    """
    file = code.co_filename
    if file.startswith("<"):
        return False
    file = str(Path(file).resolve())
    if file.startswith(_PATIENTS):
        return True
    return not file.startswith((_OURSELVES, *_LIBRARIES))


def outwards(frame: FrameType | None) -> Iterator[FrameType]:
    """This frame and its callers, innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def as_frame(frame: FrameType) -> Frame:
    """A live frame as it is written down."""
    return (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname)


def users_frame(frame: FrameType | None = None) -> Frame | None:
    """The innermost frame that is the user's own, from `frame` or from the caller outwards."""
    for each in outwards(frame or sys._getframe(1)):
        if is_users(each.f_code):
            return as_frame(each)
    return None
