"""Where a run is written down."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Set
from datetime import datetime
from pathlib import Path

import psutil

from ddpdoctor.evidence import HOST, OUTPUT, REPORT, boot
from ddpdoctor.report.output import make_folder
from ddpdoctor.run.job import CannotStart

KEPT = 10
"""Runs that are kept in a folder that was not asked for by name."""

_CLAIM = "doctor"
"""Says which doctor was the first to take a folder that was named: process number and boot."""
_NAME = re.compile(r"run-(\d{8}-\d{6})-(\d+)")
_TIME = "%Y%m%d-%H%M%S"
_QUIET = 3600.0
"""Seconds for which nothing is written where nobody runs: ranks write every second."""


class UsedBefore(ValueError):
    """The folder holds another run; the message says so in one line."""


@contextlib.contextmanager
def taken(wanted: Path | None) -> Iterator[Path | None]:
    """A folder to write to, the one that the user named; None if nothing can be written anywhere.

    Where the job cannot be started, nothing is left of it. Raises UsedBefore and OutputError.
    """
    places = [each.resolve() for each in ([wanted] if wanted else _places())]
    there = {each for place in places for each in (place, *place.parents) if each.exists()}
    if wanted:
        make_folder(wanted)
    folder = chosen(wanted) if wanted else default()
    try:
        yield folder
    except CannotStart:
        if folder is not None:
            _give_back(folder, there)
        raise


def _give_back(folder: Path, there: Set[Path]) -> None:
    with contextlib.suppress(OSError):
        for name in (_CLAIM, OUTPUT):
            (folder / name).unlink(missing_ok=True)
        for each in itertools.takewhile(lambda each: each not in there, (folder, *folder.parents)):
            each.rmdir()


def chosen(folder: Path) -> Path:
    """The folder that the user named, or one in it where another doctor of the job was first.

    Raises UsedBefore.
    """
    claim, mine = folder / _CLAIM, f"{os.getpid()} {boot()}"
    used = UsedBefore(f"{folder} holds another run: name a new folder")
    has_run = any(folder.glob("attempt-*"))
    if has_run and not claim.exists():
        raise used
    try:
        with claim.open("x") as file:
            file.write(mine)
    except FileExistsError:
        if not ((folder / REPORT).exists() or _has_ended(claim)):
            beside = folder / f"{HOST}{os.uname().nodename}-{os.getpid()}"
            beside.mkdir(exist_ok=True)
            return beside.resolve()
        if has_run:
            raise used from None
        claim.write_text(mine)
    return folder.resolve()


def _has_ended(claim: Path) -> bool:
    """Whether the doctor is gone that took the folder, as far as that can be seen from here."""
    pid, _, where = claim.read_text().partition(" ")
    return where == boot() and not psutil.pid_exists(int(pid))


def default() -> Path | None:
    """A new folder among the last runs; None if nothing can be written anywhere."""
    name = f"run-{datetime.now().strftime(_TIME)}-{os.getpid()}"
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
        if not _is_in_use(old):
            shutil.rmtree(old, ignore_errors=True)


def _is_in_use(folder: Path) -> bool:
    """Whether a doctor may still watch here, or ranks write here: of this host, or of another."""
    if (folder / REPORT).exists():
        return False
    match = _NAME.fullmatch(folder.name)
    assert match is not None
    with contextlib.suppress(psutil.Error, ValueError, OverflowError):
        began = datetime.strptime(match[1], _TIME).timestamp()
        if psutil.Process(int(match[2])).create_time() < began + 1:
            return True
    written = (_written(path) for path in (folder, *folder.rglob("*")))
    return time.time() - max(written) < _QUIET


def _written(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0
