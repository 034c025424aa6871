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

    number = itertools.count()
    torch.save = _timed(log, number, "save", torch.save, path_at=1)
    torch.load = _timed(log, number, "load", torch.load, path_at=0)
    os.replace = _rename(log, number, os.replace)
    os.rename = _rename(log, number, os.rename)


def _timed(
    log: Log,
    number: itertools.count[int],
    action: str,
    original: Callable[..., Any],
    path_at: int,
) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        file = kwargs.get("f", args[path_at] if len(args) > path_at else None)
        saved = kwargs.get("obj", args[0] if args else None) if action == "save" else None
        this = _note(log, number, action=action, path=_path(file), keys=_keys(saved))
        error = ""
        try:
            return original(*args, **kwargs)
        except BaseException as raised:
            error = _told(raised) or type(raised).__name__
            raise
        finally:
            if this is not None:
                log.write("file-end", number=this, error=error)

    return call


def _rename(
    log: Log, number: itertools.count[int], original: Callable[..., None]
) -> Callable[..., None]:
    @functools.wraps(original)
    def call(src: Any, dst: Any, **kwargs: Any) -> None:
        original(src, dst, **kwargs)
        this = _note(log, number, action="replace", path=_path(dst), source=_path(src))
        if this is not None:
            log.write("file-end", number=this, error="")

    return call


@harmless
def _note(log: Log, number: itertools.count[int], **fields: Any) -> int:
    """Write the beginning of a file event; returns its number."""
    log.write("file", place=users_frame(), **fields)
    return next(number)


@harmless
def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


@harmless
def _path(file: Any) -> str:
    """Absolute path of a path or an open file; "" for a stream in memory."""
    name = getattr(file, "name", file)
    if isinstance(name, (str, os.PathLike)):
        return str(Path(os.fspath(name)).absolute())
    return ""


@harmless
def _keys(saved: Any) -> list[str]:
    if not isinstance(saved, dict):
        return []
    return [str(key) for key in itertools.islice(saved, _KEYS_LIMIT)]
