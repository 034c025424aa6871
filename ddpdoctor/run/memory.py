"""Which processes the kernel has killed for want of memory: what it says, and nothing else."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from ddpdoctor.launch.capacity import kills_for_memory

_KILLED = re.compile(rb"(?:Killed process |,pid=)(\d+)[ ,]")
_RECORD = 8192
_MESSAGES = Path("/dev/kmsg")


class OutOfMemory:
    """The kernel's kills since this was made: of all control groups, this one's included."""

    def __init__(self) -> None:
        self._before = kills_for_memory()
        self._pids: set[int] = set()
        self._messages = _new_messages()

    @property
    def kills(self) -> int:
        """How many there were."""
        return kills_for_memory() - self._before

    def has_killed(self, pid: int) -> bool:
        """Whether the kernel's log names this process; one that cannot be read names none."""
        self._read()
        return pid in self._pids

    def close(self) -> None:
        """Look no more."""
        if self._messages is not None:
            os.close(self._messages)
            self._messages = None

    def _read(self) -> None:
        while self._messages is not None:
            try:
                record = os.read(self._messages, _RECORD)
            except BrokenPipeError:  # some were overwritten before they were read
                continue
            except OSError:
                return
            if b"out of memory" in record.lower() or b"oom-kill" in record:
                self._pids.update(map(int, _KILLED.findall(record)))


def _new_messages() -> int | None:
    """The kernel's log, from now on; None for who may not read it."""
    with contextlib.suppress(OSError):
        messages = os.open(_MESSAGES, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with contextlib.suppress(OSError):
            os.lseek(messages, 0, os.SEEK_END)
        return messages
    return None
