"""What lies where in a run directory, and which host wrote it."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import stat
from collections import Counter
from pathlib import Path
from typing import BinaryIO

LOG_NAME = "rank-{rank}.log"
CUT_SHORT = 0o444
"""The mode of a log that could not be written to its end."""
DEATHS = "deaths.log"
"""Where the processes that start ranks write down how those ended: {"pid", "code"} a line."""
IMPORTING = "importing-torch-"
"""Begins the name of a file that is there while a process imports torch: left where that fails."""
ALONE = "alone"
"""Where those write that ended before they came to torch, and that no launcher calls ranks."""
LAST_WORDS = "launcher.log"
"""What the launcher said as the doctor ended it; made by the doctor, who is about to."""
SUMMARY = "summary.log"
"""What the launcher said of ranks that failed; made, and locked, by a doctor who would tell it."""
OUTPUT = "output.log"
"""What the job printed, where it was not let print to the terminal."""
REPORT = "report.json"
"""What the doctor leaves beside the attempts once the job has ended."""
HOST = "host-"
"""Begins the name of what other doctors of the job have, in a folder that hosts share."""
MOST_RANKS = 100_000
"""A larger world is a damaged number."""
DAMAGED = (
    *(ValueError, TypeError, KeyError, IndexError, AttributeError),
    *(OverflowError, RecursionError, MemoryError),
)
"""What a line raises that is not as ranks write it."""
_HEAD = 1 << 16
_MOST_NOTES = 1 << 24
_LOG = re.compile(r"rank-(\d{1,7})\.log")
_ATTEMPT = re.compile(r"attempt-(\d+)-\d+")


def attempt_name(restart: str, port: str) -> str:
    """The folder of one set of ranks: how often the launcher had started them, where they meet."""
    return f"attempt-{restart}-{port}"


def attempt_number(name: str) -> int | None:
    """How often the launcher had started the ranks before; None if this is no such folder."""
    match = _ATTEMPT.fullmatch(name)
    return int(match[1]) if match else None


def log_of(name: str) -> int | None:
    """The rank whose log has this name; None if it is no log."""
    match = _LOG.fullmatch(name)
    return int(match[1]) if match else None


def logs(folder: Path) -> dict[int, Path]:
    """The ranks' logs in an attempt's folder, in the order of ranks. Raises OSError."""
    found = {
        rank: path
        for path in folder.iterdir()
        if (rank := log_of(path.name)) is not None and path.is_file()
    }
    return dict(sorted(found.items()))


def open_file(path: Path) -> BinaryIO:
    """Open a regular file, or a link to one: a pipe or a device would be read for ever.

    Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return open(descriptor, "rb")  # noqa: PTH123


def world_size(folder: Path) -> int:
    """The world size of an attempt, as most of its ranks say; 0 if none says it. Raises OSError."""
    said = Counter(size for path in logs(folder).values() if (size := _said(path)))
    return max(said, key=lambda size: (said[size], -size), default=0)


def _said(path: Path) -> int:
    """What a rank has said of the world size in its first lines; 0 if it has not."""
    try:
        with open_file(path) as log:
            lines = log.read(_HEAD).split(b"\n")[:-1]
    except OSError:
        return 0
    for line in lines:
        with contextlib.suppress(*DAMAGED):
            event = json.loads(line)
            if event["k"] == "start" and 0 < (size := int(event["world_size"])) <= MOST_RANKS:
                return size
    return 0


def noted_deaths(run_dir: Path) -> dict[int, int]:
    """Exit codes by process, -n for signal n, as their parents noted them."""
    codes: dict[int, int] = {}
    try:
        with open_file(run_dir / DEATHS) as file:
            lines = file.read(_MOST_NOTES).splitlines()
    except OSError:
        return codes
    for line in lines:
        with contextlib.suppress(*DAMAGED):
            death = json.loads(line)
            pid, code = int(death["pid"]), int(death["code"])
            if -64 <= code < 256:
                codes[pid] = code
    return codes


def boot() -> str:
    """What tells this host, this boot of it and this container from all others.

    Where it is the same, times can be compared, and a process number means the same process.
    """
    found = []
    with contextlib.suppress(OSError):
        found.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    for kind in ("pid", "time"):
        with contextlib.suppress(OSError):
            found.append(str(Path(f"/proc/self/ns/{kind}").stat().st_ino))
    return " ".join(found)
