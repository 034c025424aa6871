"""The promise that watching never breaks the job, in one place."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def harmless(function: Callable[P, T]) -> Callable[P, T | None]:
    """Return None where the function would raise.

    Everything that looks into the job's objects goes through here: torch's internals differ between
    versions, and a user's class may raise from any attribute. What cannot be seen is not recorded.
    """

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T | None:
        try:
            return function(*args, **kwargs)
        except Exception:
            return None

    return guarded
