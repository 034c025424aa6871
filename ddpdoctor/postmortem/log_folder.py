"""A folder of logs: what torchrun --log-dir writes, or a file for each rank by whatever name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

_TORCHRUN = re.compile(r"attempt_(\d+)/(\d{1,6})/(?:stderr|stdout)\.log$")
_NUMBERED = re.compile(r"(?:^|[^\d])(\d{1,6})(?:\.(?:log|txt|err|out))+$")
_LOG = re.compile(r"\.(?:log|txt|err|out)$")
_MOST = 4096
_MOST_ENTRIES = 100_000
_DEEPEST = 4


def logs_in(folder: Path) -> list[tuple[Path, int | None]]:
    """The logs and their ranks, as far as names tell them; of torchrun's attempts the last."""
    files = sorted(islice(_files(folder, _DEEPEST), _MOST_ENTRIES))
    of_torchrun = [(path, found) for path in files if (found := _TORCHRUN.search(path.as_posix()))]
    if of_torchrun:
        last = max(int(found[1]) for _, found in of_torchrun)
        return [(path, int(found[2])) for path, found in of_torchrun if int(found[1]) == last]
    logs = [path for path in files if _LOG.search(path.name)][:_MOST]
    numbers = [_NUMBERED.search(path.name) for path in logs]
    # A number that all names share, or that one lacks, is no rank.
    distinct = len({found[1] for found in numbers if found}) == len(logs) > 1
    return [
        (path, int(found[1]) if found and distinct else None)
        for path, found in zip(logs, numbers, strict=True)
    ]


def _files(folder: Path, depth: int) -> Iterator[Path]:
    for entry in folder.iterdir():
        if entry.is_symlink():
            continue
        if entry.is_dir() and depth:
            yield from _files(entry, depth - 1)
        elif entry.is_file() and entry.stat().st_size:
            yield entry
