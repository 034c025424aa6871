"""Records files that ranks may share: what is saved, loaded, renamed, deleted, and their folders.

torch.save and torch.load, and those of numpy, pickle and json, with their duration and their error;
and what safetensors saves.
A loop that opens a file for each sample is written down for its first ones, then once a minute.
"""

from __future__ import annotations

import functools
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import Frame, as_frame, users_frame

_KEYS_LIMIT = 32
_FREELY, _SELDOM = 32, 60.0
"""So many events of one line of code are written; after that one in so many seconds."""
_LIMIT = 5000


def install(log: Log) -> None:
    """Wrap what saves, loads and renames, in torch, numpy, pickle, json, os and shutil."""
    import json
    import pickle
    import shutil

    import torch

    events = _Events(log)
    torch.save = events.around("save", torch.save, "torch", file_at=1, object_at=0)
    torch.load = events.around("load", torch.load, "torch")
    # Where pickle looks a function up that somebody hands to another process.
    torch.serialization.save, torch.serialization.load = torch.save, torch.load
    for module, name in ((pickle, "pickle"), (json, "json")):
        written: Any = module
        written.dump = events.around("save", written.dump, name, file_at=1, object_at=0)
        written.load = events.around("load", written.load, name)
    if numpy := sys.modules.get("numpy"):
        for saver in ("save", "savez", "savez_compressed"):
            setattr(numpy, saver, events.around("save", getattr(numpy, saver), "numpy"))
        numpy.load = events.around("load", numpy.load, "numpy")  # type: ignore[attr-defined]

    events.take_in_safetensors()
    os.replace = events.after_rename(os.replace)
    os.rename = events.after_rename(os.rename)
    os.unlink = os.remove = events.after_saving(os.unlink)
    os.mkdir = events.around("mkdir", os.mkdir, "os")
    shutil.rmtree = events.around("rmtree", shutil.rmtree, "os")  # type: ignore[assignment]


class _Events:
    """Writes file events and counts them: the end of one names the number of its beginning."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._written = 0
        self._saved: set[str] = set()
        self._often: dict[Frame, tuple[int, float]] = {}
        self._inside = threading.local()
        self._safetensors: Any = None

    @harmless
    def take_in_safetensors(self) -> None:
        """Wrap what its save_file calls, whoever holds that, once it has been imported.

        It is looked for whenever a file is: a finder of ours among Python's would be seen.
        """
        module: Any = sys.modules.get("safetensors.torch")
        if module is self._safetensors or not hasattr(module, "serialize_file"):
            return
        self._safetensors = module
        module.serialize_file = self.around(
            "save", module.serialize_file, "safetensors", file_at=1, object_at=0
        )

    def around(
        self,
        action: str,
        original: Callable[..., Any],
        by: str,
        file_at: int = 0,
        object_at: int | None = None,
    ) -> Callable[..., Any]:
        """The function, with its beginning, its end and its error written down."""

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            self.take_in_safetensors()
            if not self._is_wanted():
                return original(*args, **kwargs)
            file = args[file_at] if len(args) > file_at else _named(kwargs)
            saved = args[object_at] if object_at is not None and args else kwargs.get("obj")
            number = self._begin(action, file, keys=_keys(saved), by=by)
            return self._told(number, original, args, kwargs)

        return call

    def after_rename(self, original: Callable[..., None]) -> Callable[..., None]:
        """os.replace or os.rename; those of files that were saved before are written down."""

        @functools.wraps(original)
        def call(src: Any, dst: Any, **kwargs: Any) -> None:
            source = _path(src) or ""
            published = source in self._saved
            number = self._begin("replace", dst, source=source, by="os") if published else None
            if published:
                self._saved.add(_path(dst) or "")
            self._told(number, original, (src, dst), kwargs)

        return call

    def after_saving(self, original: Callable[..., None]) -> Callable[..., None]:
        """os.unlink; those of files that this process has saved are all written down."""

        @functools.wraps(original)
        def call(path: Any, **kwargs: Any) -> None:
            wanted = (_path(path) or "") in self._saved or (
                not _is_temporary(sys._getframe(1)) and self._is_wanted()
            )
            number = self._begin("unlink", path, by="os") if wanted else None
            self._told(number, original, (path,), kwargs)

        return call

    def _told(
        self,
        number: int | None,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Call, and write down how it ended; what it calls itself is no event of its own."""
        error, outermost = "", not self._is_inside
        self._inside.now = True
        try:
            return original(*args, **kwargs)
        except BaseException as raised:
            error = _words(raised) or type(raised).__name__
            raise
        finally:
            self._inside.now = not outermost
            if number is not None:
                self._log.write("file-end", number=number, error=error)

    @property
    def _is_inside(self) -> bool:
        return getattr(self._inside, "now", False)

    @harmless
    def _is_wanted(self) -> bool:
        """Whether it is a call of its own, of a line that was not written down too often."""
        if self._is_inside:
            return False
        frame = sys._getframe(3)  # beyond this, harmless and the wrapper
        where = users_frame(frame) or as_frame(frame)  # all of pathlib's unlinks are one line
        times, last = self._often.get(where, (0, 0.0))
        now = time.monotonic()
        if (times >= _FREELY and now - last < _SELDOM) or self._written >= _LIMIT:
            return False
        self._often[where] = (times + 1, now)
        return True

    @harmless
    def _begin(self, action: str, file: Any, **fields: Any) -> int | None:
        """Write the beginning of an event that a user's line caused; its number."""
        path = _path(file) or ""
        if action == "save":
            self._saved.add(path)
        if (place := users_frame()) is None or not path:
            return None
        self._log.write(
            "file",
            action=action,
            path=path,
            place=place,
            way=self._log.way(sys._getframe(1)),
            step=self._log.steps,
            **fields,
        )
        self._written += 1
        return self._written - 1


def _is_temporary(caller: FrameType) -> bool:
    """Whether `tempfile` removes what it has made: to try a folder, or as it is closed."""
    return caller.f_globals.get("__name__") == "tempfile"


def _named(kwargs: dict[str, Any]) -> Any:
    return next((kwargs[name] for name in ("f", "fp", "file", "path") if name in kwargs), None)


@harmless
def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


@harmless
def _path(file: Any) -> str:
    """Absolute path of a path or an open file; "" for a stream in memory and what is no file."""
    name = file if isinstance(file, (str, os.PathLike)) else getattr(file, "name", None)
    if not isinstance(name, (str, os.PathLike)):
        return ""
    path = str(Path(os.fspath(name)).absolute())
    return "" if path.startswith("/dev/") else path


@harmless
def _keys(saved: Any) -> list[str]:
    if not isinstance(saved, dict):
        return []
    return [str(key) for key in itertools.islice(saved, _KEYS_LIMIT)]
