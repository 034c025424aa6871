"""Where a run is written down."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

KEPT = 10
"""Runs that are kept in a folder that was not asked for by name."""

_NAME = re.compile(r"run-\d{8}-\d{6}-\d+")


class UsedBefore(ValueError):
    """The folder holds another run; the message says so in one line."""


def chosen(folder: Path) -> Path:
    """The folder that the user named. Raises UsedBefore."""
    if any(folder.glob("attempt-*")):
        raise UsedBefore(f"{folder} holds another run: name a new folder")
    return folder.resolve()


def default() -> Path | None:
    """A new folder among the last runs; None if nothing can be written anywhere."""
    name = f"run-{datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}"
    for parent in _places():
        with contextlib.suppress(OSError):
            parent.mkdir(parents=True, exist_ok=True)
            _forget_all_but(KEPT - 1, parent)
            folder = parent / name
            folder.mkdir()
            return folder.resolve()
    return None


def _places() -> Iterator[Path]:
    yield Path("reports")
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    yield Path(state) / "ddpdoctor"
    yield Path(tempfile.gettempdir()) / f"ddpdoctor-{os.getuid()}"


def _forget_all_but(number: int, parent: Path) -> None:
    runs = sorted(path for path in parent.iterdir() if _NAME.fullmatch(path.name))
    for old in runs[: max(0, len(runs) - number)]:
        shutil.rmtree(old, ignore_errors=True)
