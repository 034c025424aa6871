"""The file that a rank writes its events to."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any


class Log:
    """Appends one JSON object a line.

    Each line is one write to a file opened for appending, so lines of several threads do not mix
    and a SIGKILL loses nothing that was written. A write that fails (full disk, closed descriptor)
    ends the log and never the job. A forked child (a data-loader worker) is not this rank: there
    the log is silent.
    """

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self.exiting = False
        os.register_at_fork(after_in_child=self._silence)

    def write(self, kind: str, **fields: Any) -> None:
        """Append an event that happened now."""
        if self._fd < 0:
            return
        line = json.dumps({"k": kind, "t": time.monotonic(), **fields}, separators=(",", ":"))
        try:
            os.write(self._fd, line.encode() + b"\n")
        except OSError:
            self._silence()

    def _silence(self) -> None:
        self._fd = -1
