"""What a process is doing: its stack by py-spy, its processor time by the kernel.

py-spy reads the memory of the process. It does not stop it, and sends it nothing.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ddpdoctor.evidence import Place

_PATIENCE = 10.0
_TRIES = 3
_WORKER = "torch/utils/data/_utils/worker.py"


class NoStack(Exception):
    """The stack cannot be had; the message says why and how to change that."""


@dataclass(frozen=True)
class Sample:
    """A process at one moment."""

    frames: tuple[Place, ...]
    """The main thread's, outermost first; empty if it could not be had."""
    ticks: int
    """Processor time of the main thread."""
    why: str = ""
    """Why there are no frames."""

    @property
    def is_worker(self) -> bool:
        """A data-loader worker."""
        return any(frame.file.endswith(_WORKER) for frame in self.frames)


def sample(pid: int, spy: str | None) -> Sample:
    """The process now; without py-spy only its processor time."""
    frames: tuple[Place, ...] = ()
    why = ""
    if spy is not None:
        try:
            frames = _stack(pid, spy)
        except NoStack as error:
            why = str(error)
    return Sample(frames, _ticks(pid), why)


def py_spy() -> str | None:
    """The program, beside this Python or on the PATH."""
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if beside.is_file() else shutil.which("py-spy")


def _stack(pid: int, spy: str) -> tuple[Place, ...]:
    command = [spy, "dump", "--nonblocking", "--full-filenames", "--json", "--pid", str(pid)]
    said = ""
    for _ in range(_TRIES):  # what runs while it is read may read as nonsense
        try:
            done = subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoStack(f"py-spy did not answer: {error}") from error
        if done.returncode == 0 and (frames := _main_thread(done.stdout, pid)):
            return frames
        said = done.stderr.decode("utf-8", "replace")
    if not Path(f"/proc/{pid}").exists():
        raise NoStack("it has ended")
    if "ermission denied" in said or "Operation not permitted" in said:
        raise NoStack("permission denied")
    raise NoStack((said.strip().splitlines() or ["py-spy found no Python stack"])[0])


def _main_thread(output: bytes, pid: int) -> tuple[Place, ...]:
    try:
        threads: list[dict[str, Any]] = json.loads(output)
        main = [t for t in threads if t.get("thread_name") == "MainThread"]
        main = main or [t for t in threads if t.get("os_thread_id") == pid] or threads[:1]
        frames = main[0]["frames"] if main else []
        return tuple(
            Place(str(f["filename"]), int(f["line"]), str(f["name"])) for f in reversed(frames)
        )
    except (ValueError, TypeError, KeyError):
        return ()


def _ticks(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/stat").read_text()
        fields = text.rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    except (OSError, ValueError, IndexError):
        return 0
