"""Records checkpoint files: torch.save and torch.load with their duration, and renames of them."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import users_frame

_KEYS_LIMIT = 32


def install(log: Log) -> None:
    """Wrap torch.save, torch.load, os.replace and os.rename of this process."""
    import torch

    events = _Events(log)
    torch.save = events.around("save", torch.save, path_at=1)
    torch.load = events.around("load", torch.load, path_at=0)
    os.replace = events.after_rename(os.replace)
    os.rename = events.after_rename(os.rename)


class _Events:
    """Writes file events and counts them: the end of one names the number of its beginning."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._count = itertools.count()
        self._saved: set[str] = set()

    def around(self, action: str, original: Callable[..., Any], path_at: int) -> Callable[..., Any]:
        """torch.save or torch.load, with its beginning, its end and its error written down."""

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            file = kwargs.get("f", args[path_at] if len(args) > path_at else None)
            saved = kwargs.get("obj", args[0] if args else None) if action == "save" else None
            number = self._begin(action, file, keys=_keys(saved))
            error = ""
            try:
                return original(*args, **kwargs)
            except BaseException as raised:
                error = _told(raised) or type(raised).__name__
                raise
            finally:
                self._log.write("file-end", number=number, error=error)

        return call

    def after_rename(self, original: Callable[..., None]) -> Callable[..., None]:
        """os.replace or os.rename; those of files that torch.save wrote are written down."""

        @functools.wraps(original)
        def call(src: Any, dst: Any, **kwargs: Any) -> None:
            original(src, dst, **kwargs)
            source = _path(src)
            if source in self._saved:
                number = self._begin("replace", dst, source=source)
                self._log.write("file-end", number=number, error="")

        return call

    def _begin(self, action: str, file: Any, **fields: Any) -> int:
        path = _path(file) or ""
        if action == "save":
            self._saved.add(path)
        self._log.write("file", action=action, path=path, place=_place(), **fields)
        return next(self._count)


_place = harmless(users_frame)


@harmless
def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


@harmless
def _path(file: Any) -> str:
    """Absolute path of a path or an open file; "" for a stream in memory."""
    name = file if isinstance(file, (str, os.PathLike)) else getattr(file, "name", None)
    return str(Path(os.fspath(name)).absolute()) if isinstance(name, (str, os.PathLike)) else ""


@harmless
def _keys(saved: Any) -> list[str]:
    if not isinstance(saved, dict):
        return []
    return [str(key) for key in itertools.islice(saved, _KEYS_LIMIT)]
