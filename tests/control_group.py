"""A control group to be tried in: what runs there can take no more than it allows."""

from __future__ import annotations

import contextlib
import os
import signal
import time
import uuid
from pathlib import Path
from types import TracebackType
from typing import Self

_TOP = Path("/sys/fs/cgroup")


class NoControlGroup(Exception):
    """None can be made here; the message says why."""


class ControlGroup:
    """A new group below the top, version 1 or 2. Leaving it kills what is in it, and removes it."""

    def __init__(self, *, memory: int, tasks: int) -> None:
        """`memory` in bytes. Raises NoControlGroup."""
        name = f"ddpdoctor-{uuid.uuid4().hex[:8]}"
        first = (_TOP / "memory").is_dir()
        tops = [_TOP / "memory", _TOP / "pids"] if first else [_TOP]
        self._folders = [top / name for top in tops]
        try:
            for folder in self._folders:
                folder.mkdir()
            limit = "memory.limit_in_bytes" if first else "memory.max"
            (self._folders[0] / limit).write_text(str(memory))
            self.tasks_folder = self._folders[-1]
            (self.tasks_folder / "pids.max").write_text(str(tasks))
        except OSError as error:
            self.remove()
            raise NoControlGroup(f"no control group can be made here: {error}") from error

    def command(self, *command: str | Path) -> list[str]:
        """A command that joins the group before it becomes the one that was given."""
        joins = " && ".join(f"echo $$ > {folder}/cgroup.procs" for folder in self._folders)
        return ["sh", "-c", f'{joins} && exec "$@"', "sh", *map(str, command)]

    def join(self) -> None:
        """Move this process into the group, for good."""
        for folder in self._folders:
            (folder / "cgroup.procs").write_text("0")

    def pids(self) -> list[int]:
        """What runs in it, and is no zombie."""
        found = (self.tasks_folder / "cgroup.procs").read_text().split()
        return [int(pid) for pid in found if _lives(pid)]

    @property
    def most_tasks(self) -> int:
        """The most processes and threads that there ever were."""
        return int((self.tasks_folder / "pids.peak").read_text())

    def was_full(self) -> bool:
        """Whether a fork failed for want of room."""
        events = (self.tasks_folder / "pids.events").read_text().split()
        return events[events.index("max") + 1] != "0"

    def remove(self) -> None:
        """Kill what is in it, and remove it."""
        for folder in self._folders:
            while folder.exists():
                for pid in (folder / "cgroup.procs").read_text().split():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
                with contextlib.suppress(OSError):
                    folder.rmdir()
                    break
                time.sleep(0.02)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.remove()


def _lives(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
