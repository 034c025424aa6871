"""What lies where in a run directory, and which host wrote it."""

from __future__ import annotations

import json
import re
from pathlib import Path

LOG_NAME = "rank-{rank}.log"
DEATHS = "deaths.log"
"""Where the processes that start ranks write down how those ended: {"pid", "code"} a line."""
_LOG = re.compile(r"rank-(\d{1,7})\.log")
_ATTEMPT = re.compile(r"attempt-(\d+)-\d+")


def attempt_name(restart: str, port: str) -> str:
    """The folder of one set of ranks: how often the launcher had started them, where they meet."""
    return f"attempt-{restart}-{port}"


def attempt_number(name: str) -> int | None:
    """How often the launcher had started the ranks before; None if this is no such folder."""
    match = _ATTEMPT.fullmatch(name)
    return int(match[1]) if match else None


def logs(folder: Path) -> dict[int, Path]:
    """The ranks' logs in an attempt's folder, in the order of ranks. Raises OSError."""
    found = {
        int(match[1]): path
        for path in folder.iterdir()
        if (match := _LOG.fullmatch(path.name)) and path.is_file()
    }
    return dict(sorted(found.items()))


def noted_deaths(run_dir: Path) -> dict[int, int]:
    """Exit codes by process, -n for signal n, as their parents noted them."""
    codes: dict[int, int] = {}
    try:
        lines = (run_dir / DEATHS).read_bytes().splitlines()
    except OSError:
        return codes
    for line in lines:
        try:
            death = json.loads(line)
            codes[int(death["pid"])] = int(death["code"])
        except (ValueError, TypeError, KeyError):
            continue
    return codes


def boot() -> str:
    """What tells this host, and this boot of it, from all others: its clock is comparable."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
