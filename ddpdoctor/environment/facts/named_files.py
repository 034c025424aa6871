"""Files that variables name: whether this process can read them, or write them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ddpdoctor.environment.facts.machine import Machine
from ddpdoctor.environment.variables import known


def unusable_files(machine: Machine) -> tuple[tuple[str, str], ...]:
    """Names of variables whose file is of no use to this process, each with why."""
    return tuple(
        (name, machine.redactor.text(why))
        for name, value in sorted(machine.environ.items())
        if value and (why := _why_unusable(machine, name, value))
    )


def _why_unusable(machine: Machine, name: str, value: str) -> str:
    kind = known()[name].kind if name in known() else "text"
    try:
        if kind == "input file":
            return next(_unreadable(machine.root / value), "")
        if kind in ("output file", "log file"):
            return next(_unwritable(machine.root / value, value), "")
    except (OSError, ValueError) as error:  # a name that no file can have
        return str(error)
    return ""


def _unreadable(path: Path) -> Iterator[str]:
    if not path.is_file():
        yield f"there is no file {path}"
    elif not _may(path, os.R_OK):
        yield f"{path} may not be read by this user"


def _unwritable(path: Path, value: str) -> Iterator[str]:
    # Ranks and hosts are written behind the name, so that it may end with the folder.
    folder = path if value.endswith("/") else path.parent
    if path.exists() and path != folder:
        if not _may(path, os.W_OK):
            yield f"{path} may not be written by this user"
    elif not folder.is_dir():
        yield f"there is no folder {folder}"
    elif not _may(folder, os.W_OK | os.X_OK):
        yield f"{folder} may not be written by this user"


def _may(path: Path, mode: int) -> bool:
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)
